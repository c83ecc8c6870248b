"""Commands about consumers and what is owed to them: check, confirm, outbox, deliver, baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.consumers import baseline, check, confirm, deliver, outbox

__all__ = ["baseline", "check", "confirm", "deliver", "outbox"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
