"""How events that were never recorded are rebuilt: sources in order of precedence, one versioned rule each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from errata.model.file_keys import AtLeast, Key
from errata.model.file_values import Column, DecimalText, InputName, Length, ScalarText, Title
from errata.model.graph.read_rule import ReadRule, Shift
from errata.model.partition import Grain

ORIGIN, RULE, RULE_VERSION, CONFIDENCE = ORIGIN_COLUMNS = ("origin", "rule", "rule_version", "confidence")
"""Columns of the target that tell how an event got there. All are NULL in an event that was recorded."""
RECORDED = "recorded"
"""Name of events that have no origin: they were recorded when they happened, or arrived late."""


@dataclass(frozen=True, slots=True)
class Match:
    """When an event of a source is one that is already known, although they share no identity."""

    on: Annotated[tuple[Column, ...], AtLeast(1), Key("Columns that must be equal, such as user, action and object.")]
    within: Annotated[Length, Key("Largest difference of the times of the two.")]


@dataclass(frozen=True, slots=True)
class RebuildRule:
    """One rule: events of a source that are not known yet are added."""

    name: Annotated[Title, Key("Its name, which every event that it adds has in the column rule.")]
    version: Annotated[ScalarText, Key("Its version. A rule that is changed needs another one.")]
    source: Annotated[InputName, Key("The frame of events, by the name that the transform gives it.")]
    identity: Annotated[
        tuple[Column, ...],
        Key("Columns that identify an event exactly. Rows in which one is NULL are left to later rules."),
    ] = ()
    match: Annotated[Match | None, Key("Without an identity: pairs events one to one, the nearest in time.")] = None
    key: Annotated[
        tuple[Column, ...],
        Key("With match: columns that identify a row of the source (default: the columns of match.on and the time)."),
    ] = ()
    confidence: Annotated[DecimalText, Key("From 0 to 1, at most two digits after the point.")] = "1"


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """How missing events of the target are rebuilt."""

    id: Annotated[Column, Key("Column with the id of an event.")]
    time: Annotated[Column, Key("Column with the time of an event.")]
    rules: Annotated[tuple[RebuildRule, ...], AtLeast(1), Key("Rules in order of precedence.")]

    @property
    def longest_match(self) -> int:
        """Seconds within which two events may be the same."""
        return max((rule.match.within for rule in self.rules if rule.match), default=0)


_SHORTEST = {Grain.HOUR: 3_600, Grain.DAY: 86_400, Grain.MONTH: 28 * 86_400, Grain.YEAR: 365 * 86_400}


def count_partitions_around(rules: Reconstruction, grain: Grain) -> int:
    """Partitions before and after one that can hold an event of it under another time; 0 where values have no order."""
    return max(1, -(-rules.longest_match // _SHORTEST[grain])) if grain.is_time and rules.longest_match else 0


def list_partitions_around(rules: Reconstruction, grain: Grain, partitions: Sequence[str]) -> tuple[str, ...]:
    """These partitions and those around them; they are also the ones that read one of these."""
    around = Shift.of_steps(count_partitions_around(rules, grain), grain)
    return tuple(ReadRule(grain, grain, around, around).list_reads(partitions)) if grain.is_time else tuple(partitions)
