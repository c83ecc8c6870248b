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
    zone: str = "UTC"  # of the grain; transforms of timestamps count in UTC
    add_columns: Mapping[str, str] = field(default_factory=dict)  # name → Iceberg type; visible with a publication
    subjects: tuple[str, ...] = ()  # columns with ids of those whom rows are about


@dataclass(frozen=True, slots=True)
class Transform:
    """Which function computes the product."""

    call: str  # module:function
    version: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Input:
    """What a transform reads: an Iceberg table or files; ``partition`` None means read whole (reference data)."""

    name: str
    table: str | None = None
    files: str | None = None
    partition: str | None = None
    lookback: str = "0d"
    lookahead: str = "0d"
    reference: str | None = None  # as_recorded | corrected_truth | current | as_decided
    own: bool = False  # the product's own earlier partitions: those this run staged, before them those of its base
    columns: Mapping[str, str] = field(default_factory=dict)  # what the transform sees; empty: as it is
    eras: tuple[Era, ...] = ()
    rows: tuple[RowRule, ...] = ()
    version: str | None = None  # a tag of the table; None: its newest snapshot

    @property
    def needs_schema(self) -> bool:
        """Whether a plan must know what the source's files look like inside."""
        return bool(self.columns or self.rows)


@dataclass(frozen=True, slots=True)
class Protect:
    """Partitions that need a named override to be touched."""

    recent: str = "0d"
    locked: tuple[str, ...] = ()  # partitions or inclusive spans


@dataclass(frozen=True, slots=True)
class Merge:
    """How rows of a transform meet those that are there, by the target's key."""

    version: str | None = None  # a column; a row with an older one changes nothing
    delete: str | None = None  # a condition on the transform's rows: those take their key out
    sql: str = ""  # its normal form
    markers: tuple[str, ...] = ()  # columns that the condition speaks about


@dataclass(frozen=True, slots=True)
class Groups:
    """Partitions become visible a few at a time, with a hold between two publications of the run."""

    size: int  # partitions in one publication, at most
    hold: str  # how long at least, such as 30min
    order: str | None = None  # newest | oldest; None: as the run computes them


@dataclass(frozen=True, slots=True)
class Freeze:
    """How long cooperating live jobs are held off, in seconds."""

    idle: int = 3600  # since a command last worked on the run
    at_most: int = 28_800  # since the first of them


@dataclass(frozen=True, slots=True)
class Publish:
    """How a correction reaches readers, and what becomes of live writes meanwhile."""

    mode: str = "replace_partitions"
    merge: Merge | None = None  # mode merge
    view: str | None = None  # mode version: what is accepted of each partition; mode swap_view: what readers read
    versions: str | None = None  # modes version and swap_view: the table in which outputs stand side by side
    corrections: str | None = None  # the table of old and new values by key; alone in mode corrections
    creates: tuple[str, ...] = ()  # statements that make the tables which were not there when the run was planned
    groups: Groups | None = None  # None: the whole scope at once
    on_live_write: str = "conflict"  # | freeze | live_wins: what a live write into the scope means
    freeze: Freeze | None = None  # on_live_write freeze


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
    prove_determinism: int = 0  # sample chunks that are computed twice before a run may start
    tolerance: Mapping[str, str] = field(default_factory=dict)  # diff: column → "0.01" or "0.5%" that is no change
    classified: tuple[str, ...] = ()  # columns whose values are masked wherever rows are shown
    throttle: Throttle | None = None  # instead of the project's
    health: tuple[Signal, ...] = ()  # besides the project's
    approval: ApprovalRules = field(
        default_factory=ApprovalRules
    )  # the project's, with what the product says otherwise
    manual: bool = True  # a person releases each candidate; False: one that is clean publishes by itself
    path: str = ""  # the file, relative to the project
    lines: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)  # where rules stand in it
