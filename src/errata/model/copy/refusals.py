"""Why a delivery to a copy writes nothing, in the same words for every warehouse. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from errata.errors import AttemptLost, CopyChanged, CopyOvertaken, EngineError, StateRefused
from errata.model.copy.marker import Marker
from errata.model.copy.table import CopyTable
from errata.model.partition import format_ranges

_NOTHING = "nothing was written"
_SHOWN = 3


def refuse_lost(marker: Marker) -> AttemptLost:
    """The marker is not open: another process has ended this attempt."""
    return AttemptLost(f"attempt {marker.attempt} of {marker.publication} was ended by another process", state=_NOTHING)


def refuse_overtaken(copy: CopyTable, lowered: Sequence[str]) -> CopyOvertaken:
    """Another delivery changed the record, or has brought something newer."""
    return CopyOvertaken(
        f"another delivery to {copy.name} came first", state=_NOTHING, hint="errata deliver", partitions=list(lowered)
    )


def refuse_changed(copy: CopyTable, differing: Sequence[str]) -> CopyChanged:
    """Someone else wrote the partitions."""
    told = format_ranges(copy.grain, differing, _SHOWN)
    return CopyChanged(
        f"{copy.name} holds other rows than the last delivery left there, in {told}",
        state=_NOTHING,
        partitions=list(differing),
    )


def refuse_staging(copy: CopyTable, staging: str) -> StateRefused:
    """A table of this name exists: someone else loads it."""
    return StateRefused(
        f"the staging table {staging} in {copy.warehouse} was refused; it exists already", state="nothing was loaded"
    )


def refuse_content(copy: CopyTable, differing: Sequence[str]) -> EngineError:
    """What would be in the copy is not what the lake has."""
    told = format_ranges(copy.grain, differing, _SHOWN)
    return EngineError(f"the rows that reached {copy.name} are not those of the lake, in {told}", state=_NOTHING)


def refuse_count(copy: CopyTable, verb: str, found: int, wanted: int) -> EngineError:
    """A statement changed another number of rows than it should."""
    return EngineError(f"{copy.name}: expected {wanted:,} rows to be {verb}, found {found:,}", state=_NOTHING)
