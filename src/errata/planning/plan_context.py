"""Everything the guardrails look at. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from errata.model.consumer.declaration import Consumer
from errata.model.consumer.effect import StreamState
from errata.model.copy.repair import CopyRepair
from errata.model.kind import Kind, find_kind
from errata.model.manifest import Code, Estimate
from errata.model.partition import Grain, format_ranges
from errata.model.product import Limits, Product
from errata.model.product.erasure import ErasurePin
from errata.model.product.reconstruction import Reconstruction
from errata.model.recording.declaration import Source
from errata.model.refs import RUN_DAYS
from errata.planning.inputs.restore_origin import RestoreOrigin
from errata.planning.request import Request
from errata.ports.tables import ActiveRun, InputState, PastTarget, TargetState

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of code that is on record."""

    at: str
    person: str
    is_blocked: bool  # something blocked at the gate


@dataclass(frozen=True, slots=True)
class SealedRules:
    """Rules for missing events of a run that computed something, and its code."""

    run_id: str
    rules: Reconstruction
    version: str
    zip_digest: str


@dataclass(frozen=True, slots=True)
class PlanContext:
    """A request, and the state of everything it touches."""

    request: Request
    product: Product
    limits: Limits
    partitions: tuple[str, ...]
    target: TargetState
    inputs: Mapping[str, InputState]
    code: Code
    estimate: Estimate
    now: datetime
    active_runs: Sequence[ActiveRun] = ()
    unknown_runs: Sequence[str] = ()  # have branches or tags on the target, and this ledger does not have them
    is_first_run: bool = False  # this ledger has no run of the target
    beside: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)  # columns by side table; None: absent
    held: PastTarget | None = None  # snapshot that a restore puts back
    origin: RestoreOrigin | None = None  # where a restore takes rows from, if not from the target itself
    core_hour_usd: str = "0"
    trial: Trial | None = None  # the newest trial of this code on record; looked up only where a policy asks for one
    sealed_rules: Sequence[SealedRules] = ()  # of earlier runs of the product, newest first
    consumers: Sequence[Consumer] = ()
    sources: Sequence[Source] = ()  # of recordings
    streams: Mapping[str, StreamState] = field(default_factory=dict)  # of consumers that are streams, by name
    repairs: Sequence[CopyRepair] = ()  # of copies in warehouses
    waves: Sequence[tuple[str, ...]] = ()  # partitions of each wave, in order
    erasure: ErasurePin | None = None  # the list of erased subjects, where the product needs it
    kept_days: int = RUN_DAYS  # for how long the run keeps what it reads and computes

    @property
    def kind(self) -> Kind:
        """What a run of the requested kind does."""
        return find_kind(self.request.kind)

    def folded(self, partitions: Sequence[str], grain: Grain | None = None) -> str:
        """Format partitions as ranges, cut short because results are stored for good."""
        return format_ranges(grain or self.product.target.grain, partitions, _SHOWN)
