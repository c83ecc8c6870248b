"""Commands about what is owed to consumers: outbox, deliver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.consumers import deliver, outbox

__all__ = ["deliver", "outbox"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
