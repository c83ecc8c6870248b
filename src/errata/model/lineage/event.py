"""What a lineage event says, before it is written as OpenLineage. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.model.lineage.moments import EventKind, Subject


@dataclass(frozen=True, slots=True)
class RunKey:
    """What the id of a run is made of: always the same for the same run, in every process and at every time."""

    at: str  # an instant on record
    text: str
    job: str


@dataclass(frozen=True, slots=True)
class Assertion:
    """A rule of the gate and whether it held; without values."""

    rule: str
    held: bool
    severity: str  # error | warn


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """A dataset as a run reads, judges or writes it."""

    namespace: str
    name: str
    version: str | None = None  # the snapshot
    column: str = ""  # that partitions are made of
    partitions: tuple[str, ...] = ()
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    overwrites: bool = False
    assertions: tuple[Assertion, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # name → type
    made_from: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    """Column → (namespace, name, column) of the inputs that it is computed from."""


@dataclass(frozen=True, slots=True)
class LineageEvent:
    """One event."""

    kind: EventKind
    subject: Subject
    at: str
    run: RunKey
    parent: RunKey | None = None
    inputs: tuple[DatasetUse, ...] = ()
    outputs: tuple[DatasetUse, ...] = ()
    error: str = ""  # a code; messages may quote rows
    about: Mapping[str, str] = field(default_factory=dict)  # ids and names of Errata
