"""Port for reading what a change log holds, before a plan seals a position of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.change_log.log_pin import LogState
    from errata.model.product import Input
    from errata.ports.tables import InputState


class ChangeLogReader(Protocol):
    """Reads the messages of a change log, as they are pinned; changes nothing."""

    def read_log(
        self,
        source: Input,
        changes: InputState,
        ends: InputState,
        since: Mapping[str, int],
        lacks_since: Sequence[str],
    ) -> LogState:
        """What the messages hold, and which part of the log the input means; raises ``EngineError``.

        ``ends`` must have been read before ``changes``, so that the changes of every END are there. ``since`` has
        positions of accepted runs by partition, ``lacks_since`` the partitions without one. Only aggregates come back,
        however long the log is.
        """
