"""Commands about consumers: what is owed to them, what is ready, acknowledgements, streams, copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.consumers import acknowledge, baseline, check, confirm, copies, deliver, outbox, ready

__all__ = ["acknowledge", "baseline", "check", "confirm", "copies", "deliver", "outbox", "ready"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
