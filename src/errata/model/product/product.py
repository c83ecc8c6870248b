"""One governed table, as its product file declares it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.model.approval import ApprovalRules
from errata.model.partition import Grain
from errata.model.product.eras import Era, RowLimits, RowRule
from errata.model.product.rules import Check, Comparison, Control, Reconciliation
from errata.model.product.throttle import Signal, Throttle

LINEAGE_COLUMNS = (
    "produced_by_run_id",
    "produced_by_transform",
    "transform_version",
    "input_snapshot_id",
    "input_range_start",
    "input_range_end",
    "processing_mode",
    "reference_data_version",
    "restatement_reason",
)


@dataclass(frozen=True, slots=True)
class Target:
    """The governed table."""

    table: str  # catalog.namespace.table
    column: str
    grain: Grain
    key: tuple[str, ...] = ()
    zone: str = "UTC"  # zone of the grain; transforms of timestamps count in UTC
    add_columns: Mapping[str, str] = field(default_factory=dict)  # name → Iceberg type; added by a publication
    subjects: tuple[str, ...] = ()  # columns that identify data subjects


@dataclass(frozen=True, slots=True)
class Transform:
    """The function that computes the product."""

    call: str  # module:function
    version: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """A source of the transform: an Iceberg table or files; ``partition`` None means read whole (reference data)."""

    name: str
    table: str | None = None
    files: str | None = None
    partition: str | None = None
    lookback: str = "0d"
    lookahead: str = "0d"
    reference: str | None = None  # as_recorded | corrected_truth | current | as_decided
    own: bool = False  # the product's own earlier partitions: those staged by this run, before them those of its base
    columns: Mapping[str, str] = field(default_factory=dict)  # columns that the transform sees; empty: unchanged
    eras: tuple[Era, ...] = ()
    rows: tuple[RowRule, ...] = ()
    version: str | None = None  # a tag of the table; None: its newest snapshot

    @property
    def needs_schema(self) -> bool:
        """Whether planning must read the schemas of the source's files."""
        return bool(self.columns or self.rows)


@dataclass(frozen=True, slots=True)
class Protect:
    """Partitions that can only be touched with a named override."""

    recent: str = "0d"
    locked: tuple[str, ...] = ()  # partitions or inclusive spans


@dataclass(frozen=True, slots=True)
class Merge:
    """How the transform's rows are merged with existing rows, by the target's key."""

    version: str | None = None  # a column; rows with an older version are ignored
    delete: str | None = None  # a condition on the transform's rows; a match deletes the key
    sql: str = ""  # normal form of the delete condition
    markers: tuple[str, ...] = ()  # columns that the delete condition uses


@dataclass(frozen=True, slots=True)
class Groups:
    """Partitions become visible a few at a time, with a hold between two publications of the run."""

    size: int  # most partitions in one publication
    hold: str  # minimum wait, such as 30min
    order: str | None = None  # newest | oldest; None: order of computation


@dataclass(frozen=True, slots=True)
class Freeze:
    """How long cooperating live jobs are kept out, in seconds."""

    idle: int = 3600  # since the last command that worked on the run
    at_most: int = 28_800  # since the first command that worked on the run


@dataclass(frozen=True, slots=True)
class Publish:
    """How a correction reaches readers, and how live writes are handled meanwhile."""

    mode: str = "replace_partitions"
    merge: Merge | None = None  # mode merge
    view: str | None = None  # mode version: current version of each partition; mode swap_view: what readers query
    versions: str | None = None  # modes version and swap_view: the table that stores outputs side by side
    corrections: str | None = None  # the table of old and new values by key; the only output in mode corrections
    creates: tuple[str, ...] = ()  # statements that create the tables missing at planning
    groups: Groups | None = None  # None: the whole scope at once
    on_live_write: str = "conflict"  # | freeze | live_wins: effect of a live write in scope
    freeze: Freeze | None = None  # only with on_live_write freeze


@dataclass(frozen=True, slots=True)
class Product:
    """One governed table, as its product file declares it."""

    name: str
    owner: str
    target: Target
    transform: Transform
    inputs: tuple[Input, ...]
    description: str = ""
    publish: Publish = field(default_factory=Publish)
    rollback_window: str = "30d"
    checks: tuple[Check, ...] = ()
    reconcile: tuple[Reconciliation, ...] = ()
    compare: tuple[Comparison, ...] = ()
    control: tuple[Control, ...] = ()
    row_limits: tuple[RowLimits, ...] = ()  # of quarantine, by input
    protect: Protect = field(default_factory=Protect)
    lineage_columns: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    prove_determinism: int = 0  # number of sample chunks to compute twice before a run may start
    tolerance: Mapping[str, str] = field(default_factory=dict)  # diff: column → "0.01" or "0.5%", no change
    classified: tuple[str, ...] = ()  # columns whose values are masked wherever rows are shown
    throttle: Throttle | None = None  # replaces the project's, with which it is already merged
    health: tuple[Signal, ...] = ()  # in addition to the project's
    approval: ApprovalRules = field(default_factory=ApprovalRules)  # the project's rules, with the product's changes
    manual: bool = True  # a person releases each candidate; False: a clean candidate is published automatically
    path: str = ""  # the file, relative to the project
    lines: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)  # line of each rule in the file
