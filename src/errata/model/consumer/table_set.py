"""Tables of a campaign, which become not ready together and ready together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableSet:
    """Tables whose readers are held before the first publication, or the first rollback, of a campaign."""

    campaign_id: str
    partitions: Mapping[str, tuple[str, ...]]  # by table
    undo: int = 0  # number of the audit entry with which its rollback began; 0: it is published


@dataclass(frozen=True, slots=True)
class SetMember:
    """How far a member of a campaign is."""

    product: str
    after: tuple[str, ...]  # the members that it reads
    has_begun: bool = False  # something of it is published, or on its way
    is_out: bool = False  # everything of it is published
    has_ended: bool = False  # it was given up or rolled back


def is_incomplete(members: Iterable[SetMember]) -> bool:
    """Whether readers could see the correction of one table and not of another, where it may still come.

    ``members`` are in the order of the campaign, each after those that it reads. What was given up does not come, nor
    what reads it.
    """
    found, stopped = tuple(members), set[str]()
    for one in found:
        if one.has_ended or not stopped.isdisjoint(one.after):
            stopped.add(one.product)
    is_begun = any(one.has_begun or one.is_out for one in found)
    return is_begun and any(not one.is_out and one.product not in stopped for one in found)


def join_tables(groups: Mapping[str, Iterable[str]], tables: Iterable[str]) -> tuple[str, ...]:
    """These tables with all that are in one group with them, directly or through others, in order.

    >>> join_tables({"ca-1": ["a", "b"], "ca-2": ["b", "c"], "ca-3": ["x"]}, ["a"])
    ('a', 'b', 'c')
    """
    sets = [set(group) for group in groups.values()]
    found, size = set(tables), -1
    while size != len(found):
        size = len(found)
        for group in sets:
            if not group.isdisjoint(found):
                found |= group
    return tuple(sorted(found))
