"""Port for lineage events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.lineage.event import LineageEvent

REFUSED = "refused"
"""Field of an error: the collector will never take this event."""


class LineageSender(Protocol):
    """Sends lineage events where errata.yaml says."""

    def check(self) -> str:
        """A line about where events go; raises ``ErrataError`` if they cannot go there now. Sends none."""

    def send(self, events: Sequence[LineageEvent]) -> None:
        """Send the events in this order; returns once the receiver has taken every one.

        The same events may be sent again: they are the same bytes, with the same run ids. Raises ``EngineError``, with
        the field ``REFUSED`` if the receiver will never take one; some of the events may have been taken. Raises
        ``MissingDriver`` without the package that writes events. No secret is in an event or an error.
        """
