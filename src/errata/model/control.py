"""Which partitions are comparable with one: the same weekday, weekday and hour, or calendar month. Pure.

Years have no season to share and values no order, so nothing is comparable with them.
"""

from __future__ import annotations

from errata.errors import UsageError
from errata.model.partition import NULL, Grain, from_ordinal, ordinal

__all__ = ["comparable"]

_STEP = {Grain.HOUR: 7 * 24, Grain.DAY: 7, Grain.MONTH: 12}


def comparable(grain: Grain, partition: str, reach: int) -> tuple[str, ...]:
    """Up to ``reach`` weeks (months: years) before and after, oldest first, whether they exist or not.

    >>> comparable(Grain.DAY, "2026-01-15", 1)
    ('2026-01-08', '2026-01-22')
    """
    step = _STEP.get(grain)
    if step is None or partition == NULL:
        return ()
    here = ordinal(grain, partition)
    found = []
    for n in range(-reach, reach + 1):
        try:
            found += [from_ordinal(grain, here + n * step)] if n else []
        except UsageError:
            continue  # before the first year or after the last that a date can have
    return tuple(found)
