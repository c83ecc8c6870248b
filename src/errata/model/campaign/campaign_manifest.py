"""The campaign manifest: the plans of all members, sealed before anything runs. Pure.

The plan of a member is the manifest that its run will have, as far as it can be known: a member that reads what another
one publishes cannot name the snapshot yet. :mod:`errata.model.campaign.derivation` fills in what was missing, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from errata.canonical import LEFT_OUT
from errata.model.manifest import Manifest
from errata.model.partition import Grain

FORMAT = "errata.campaign/1"
PREFIX = "ca-"
"""What the id of a campaign begins with; that of a run begins with ``bf-``."""


@dataclass(frozen=True, slots=True)
class SealedRead:
    """What a member reads of a table that other members or it itself write, in partitions of that table."""

    input: str
    table: str
    column: str  # of the table's partitions
    grain: Grain
    snapshot_id: str | None  # at which the fingerprints were read
    fingerprints: Mapping[str, str]  # of the partitions that no run of this campaign writes before
    from_run: str = ""  # the member that writes the others; empty for the member's own earlier output
    published: tuple[str, ...] = ()  # the partitions that it writes


@dataclass(frozen=True, slots=True)
class Member:
    """One product of a campaign."""

    product: str
    after: tuple[str, ...]  # the members that it reads; each must be published first
    manifest: Manifest  # without what is known only when the member starts
    reads: tuple[SealedRead, ...] = ()
    live_inputs: tuple[str, ...] = ()  # read as they are when the member starts, as its product file says


@dataclass(frozen=True, slots=True)
class DbtStep:
    """A model that dbt builds after the members that it reads; Errata cannot undo it."""

    model: str  # unique id
    select: str
    relation: str
    strategy: str
    after: tuple[str, ...]
    start: str  # ISO instants, half-open
    end: str
    digests: Mapping[str, str]  # of project, packages, manifest and compiled SQL
    command: tuple[str, ...] = ("dbt",)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A product that reads what the campaign changes and is not a member."""

    product: str
    why: str


@dataclass(frozen=True, slots=True)
class Campaign:
    """One sealed campaign."""

    format: str
    ledger_id: str
    project: str
    product: str  # where the correction begins
    reason: str
    requested_by: str
    single_user: bool
    valid_for: str  # from planning; members that have not started by then need a new campaign
    members: tuple[Member, ...]  # each after those that it reads
    left_out: tuple[LeftOut, ...] = ()
    supersedes: str | None = None
    dbt: tuple[DbtStep, ...] = field(default=(), metadata=LEFT_OUT)

    def find(self, product: str) -> Member:
        """The member of this product; there must be one."""
        return next(one for one in self.members if one.product == product)

    def list_descendants(self, product: str) -> tuple[str, ...]:
        """Members and models of dbt that read this one, directly or through others, in order."""
        reached = {product}
        found = []
        for name, after in self.list_steps():
            if reached.intersection(after):
                reached.add(name)
                found.append(name)
        return tuple(found)

    def list_steps(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Name of every member and model of dbt, with what it comes after; each after those."""
        return (*((one.product, one.after) for one in self.members), *((one.select, one.after) for one in self.dbt))


def list_ancestors(steps: Sequence[tuple[str, tuple[str, ...]]], name: str) -> tuple[str, ...]:
    """Everything that must be published before this step, in order."""
    after = dict(steps)
    reached: set[str] = set()
    waiting = list(after.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting.extend(after.get(one, ()))
    return tuple(one for one, _ in steps if one in reached)
