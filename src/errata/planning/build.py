"""Build a plan from the request, the product and the state of the tables. Pure: equal arguments give equal bytes.

No clock value enters the manifest: ``now`` is used only for the guardrails, the deadline and the run id. Long lists
become parts, named by their digests, so that the manifest itself stays small enough to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from errata.canonical import canonical_bytes, sha256
from errata.model.cluster.cluster_seal import seal_clusters
from errata.model.consumer.effect import StreamState
from errata.model.copy.repair import CopyRepair
from errata.model.duration import to_days
from errata.model.graph.read_rule import rule_of_input
from errata.model.kind import RECONCILE, find_kind
from errata.model.manifest import FORMAT, Chunk, Code, Estimate, Manifest, Restored
from errata.model.product import Input, Product, Project, Publish
from errata.model.product.erasure import ErasurePin
from errata.model.refs import shadow_table
from errata.model.side_tables import build_create_statements
from errata.model.waves import group_into_waves, split_into_waves
from errata.planning.control_partitions import find_control_partitions, list_control_reaches
from errata.planning.deadline import evaluate_deadline, parse_deadline
from errata.planning.estimate import Rates, Work, count_worker_cores, derive_rates, estimate_run
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.guardrails import check_guardrails, is_refused, list_used_overrides
from errata.planning.inputs.restore_origin import RestoreOrigin, build_origin_record
from errata.planning.packing import MAX_PARTITIONS, compute_chunk_bytes, order_partitions, pack_chunks
from errata.planning.pins import build_input_pin, build_target_pin, find_as_of
from errata.planning.plan_context import PlanContext, SealedRules, Trial
from errata.planning.request import (
    Request,
    refuse_other_spellings,
    resolve_canary,
    resolve_order,
    resolve_partitions,
)
from errata.planning.restore import INPUT, build_restored
from errata.planning.shared_files import find_partition_unit
from errata.ports.tables import ActiveRun, InputState, PartitionSize, PastRun, PastTarget, TargetState
from errata.views import DeadlineView


@dataclass(frozen=True, slots=True)
class Plan:
    """Outcome of planning. ``manifest`` is None when the plan is refused; ``verdicts`` say why."""

    request: Request
    partitions: tuple[str, ...]
    verdicts: tuple[GuardrailResult, ...]
    estimate: Estimate
    chunks: tuple[Chunk, ...]
    manifest: Manifest | None
    content: bytes  # the manifest's canonical bytes; empty when refused
    digest: str
    run_id: str
    parts: Mapping[str, bytes]  # digest → canonical bytes
    untouched_partitions: int
    new_partitions: tuple[str, ...]  # in scope, not in the target yet
    same_as: str | None = None  # active run with an identical manifest
    order: str = "newest"
    deadline: DeadlineView | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the plan is refused, so that nothing may be recorded."""
        return self.manifest is None


def product_slug(product: str) -> str:
    """Last part of a product name, as used in run ids.

    >>> product_slug("fin.daily_revenue")
    'daily-revenue'
    """
    return product.rpartition(".")[2].lower().replace("_", "-")


def build_run_id(product: str, digest: str, now: datetime) -> str:
    """Run id: ``bf-<day of planning>-<slug>-<first 8 hex digits of the manifest digest>``."""
    return f"bf-{now.astimezone(UTC):%Y%m%d}-{product_slug(product)}-{digest[:8]}"


def build_plan(
    request: Request,
    product: Product,
    project: Project,
    target: TargetState,
    inputs: Mapping[str, InputState],
    code: Code,
    *,
    now: datetime,
    ledger_id: str,
    active_runs: Sequence[ActiveRun] = (),
    unknown_runs: Sequence[str] = (),
    is_first_run: bool = False,
    history: Sequence[PastRun] = (),
    beside: Mapping[str, tuple[str, ...] | None] | None = None,
    held: PastTarget | None = None,
    origin: RestoreOrigin | None = None,
    trial: Trial | None = None,
    sealed_rules: Sequence[SealedRules] = (),
    streams: Mapping[str, StreamState] | None = None,
    repairs: Sequence[CopyRepair] = (),
    repaired: Mapping[str, bytes] | None = None,
    erasure: ErasurePin | None = None,
) -> Plan:
    """Check a request against the guardrails and, unless one refuses, seal its manifest."""
    by = parse_deadline(request.deadline, now) if request.deadline else None
    partitions = resolve_partitions(request, product.target.grain)
    unit = find_partition_unit(product.target, target)
    refuse_other_spellings(partitions, unit.column_type if unit else None)
    rates, cores = derive_rates(history), count_worker_cores(project, product)
    chunks = _pack_chunks(request, product, project, partitions, target, inputs, rates, cores)
    work, expected = _estimate_chunks(project, product, chunks, inputs, rates, cores)
    world = PlanContext(
        request, product, project.limits, partitions, target, inputs, code, expected, now,
        kept_days=min(to_days(project.retention.pins), to_days(project.retention.staged)),
        beside=beside or {}, held=held, origin=origin, core_hour_usd=project.core_hour_usd, unknown_runs=unknown_runs,
        is_first_run=is_first_run, trial=trial, sealed_rules=sealed_rules,
        consumers=project.list_consumers(product.name), streams=streams or {}, repairs=repairs,
        sources=tuple(project.sources.values()),
        waves=[wave.partitions for wave in group_into_waves(product.target.grain, chunks)], erasure=erasure,
    )  # fmt: skip
    parts: dict[str, bytes] = dict(repaired or {})
    if request.kind == RECONCILE or world.kind.only_copies:
        chunks = ()  # nothing is computed; the estimate counts what the gate reads
    draft = _build_manifest(world, project, ledger_id, chunks, parts)

    verdicts, sealed, content, same = _check_and_seal(world, draft, active_runs)
    digest, throttle = sha256(content) if sealed else "", product.throttle or project.throttle
    name = same.run_id if same else build_run_id(product.name, digest, now) if sealed else ""
    return Plan(
        request=request,
        partitions=partitions,
        verdicts=verdicts,
        estimate=expected,
        chunks=chunks,
        manifest=sealed,
        content=content,
        digest=digest,
        run_id=name,
        parts=parts if sealed else {},
        untouched_partitions=len(target.partitions.keys() - set(partitions)),
        new_partitions=tuple(text for text in partitions if text not in target.partitions),
        same_as=same.run_id if same else None,
        order=resolve_order(request, product),
        deadline=evaluate_deadline(by, now, work, rates, cores, project.core_hour_usd, throttle) if by else None,
    )


def build_own_input(source: Input, product: Product, target: TargetState, partitions: Sequence[str]) -> InputState:
    """State of a product's own earlier output, taken from the target's base so that no later commit gets in.

    Partitions in scope are left out: the run computes them itself before it needs them.
    """
    scope, field = set(partitions), find_partition_unit(product.target, target)
    asked = rule_of_input(source, product.target.grain).list_reads(partitions)
    held = {name: target.partitions[name] for name in asked if name in target.partitions and name not in scope}
    return InputState(
        name=source.name,
        kind="table",
        location=target.table,
        column_type=field.column_type if field else None,
        partitions=held,
        snapshot_id=target.base_snapshot_id,
        table_uuid=target.table_uuid,
        newest_ms=target.base_timestamp_ms,
    )


def _measure_partitions(
    product: Product, partitions: Sequence[str], inputs: Mapping[str, InputState]
) -> dict[str, PartitionSize] | None:
    """Size of the input that belongs to each partition, without look-back; None if no input is partitioned."""
    rules = {one.name: rule_of_input(one, product.target.grain).without_look for one in product.inputs if not one.own}
    known = {name: facts for name, facts in inputs.items() if name in rules and not rules[name].is_wider}
    if not any(facts.partitions for facts in known.values()):
        return None
    sizes = {}
    for name in partitions:
        parts = [
            facts.partitions[read]
            for source, facts in known.items()
            for read in rules[source].list_reads([name])
            if read in facts.partitions
        ]
        rows, size, files = (sum(getattr(part, what) for part in parts) for what in ("rows", "bytes", "files"))
        sizes[name] = PartitionSize(rows, size, files)
    return sizes


def _build_restored(world: PlanContext) -> Restored | None:
    if world.origin is not None:
        return build_origin_record(world.origin, world.inputs[INPUT])
    return build_restored(world.held, world.request.restore or "") if world.held else None


def _check_and_seal(
    world: PlanContext, draft: Manifest | None, active_runs: Sequence[ActiveRun]
) -> tuple[tuple[GuardrailResult, ...], Manifest | None, bytes, ActiveRun | None]:
    """Check the guardrails and seal the manifest, first as if no other run were active.

    Repeating a plan must find its own run instead of an overlap with it, so other runs are considered only afterwards.
    Control partitions held by another run are left out, but not those of a run that started after this plan was made.
    """
    by_digest = {run.digest: run for run in active_runs}
    for others, avoided in _iterate_run_views(world, active_runs):
        verdicts = check_guardrails(replace(world, active_runs=others))
        sealed = _seal_manifest(_add_controls(draft, world, avoided), verdicts)
        content = canonical_bytes(sealed) if sealed else b""
        same = by_digest.get(sha256(content))
        if same:
            break
    return verdicts, sealed, content, same


def _iterate_run_views(
    world: PlanContext, active_runs: Sequence[ActiveRun]
) -> Iterator[tuple[tuple[ActiveRun, ...], tuple[ActiveRun, ...]]]:
    """Yield (runs the guardrails see, runs whose partitions cannot be controls); the last pair decides."""
    everyone = tuple(active_runs)
    yield (), ()
    if everyone and list_control_reaches(world.product):
        yield (), everyone
    if everyone:
        yield everyone, everyone


def _add_controls(draft: Manifest | None, world: PlanContext, avoided: Sequence[ActiveRun]) -> Manifest | None:
    if draft is None or not list_control_reaches(world.product):
        return draft
    controls = find_control_partitions(world.product, world.partitions, world.target, avoided)
    return replace(draft, control_partitions=controls)


def _seal_manifest(draft: Manifest | None, verdicts: Sequence[GuardrailResult]) -> Manifest | None:
    if draft is None or is_refused(verdicts):
        return None
    sealed = replace(draft, overrides=list_used_overrides(verdicts))
    stages_nothing = not sealed.chunks
    if stages_nothing or (not sealed.target.new_columns and sealed.target.rewrite is None):
        return sealed
    # the shadow's name derives from the digest of the manifest that does not name it yet
    shadow = shadow_table(sealed.target.table, product_slug(sealed.product), sha256(canonical_bytes(sealed)))
    return replace(sealed, target=replace(sealed.target, shadow=shadow))


def _pack_chunks(
    request: Request,
    product: Product,
    project: Project,
    partitions: Sequence[str],
    target: TargetState,
    inputs: Mapping[str, InputState],
    rates: Rates,
    cores: int,
) -> tuple[Chunk, ...]:
    """Pack partitions into chunks by the size of the partitioned inputs, or of the existing output if none is known."""
    own = {source.name for source in product.inputs if source.own}
    sizes = _measure_partitions(product, partitions, inputs)

    def size(name: str) -> tuple[int, int]:
        found = (target.partitions if sizes is None else sizes).get(name)
        return (found.rows, found.bytes) if found else (0, 0)

    grain, order = product.target.grain, resolve_order(request, product)
    changes_table = find_kind(request.kind).changes_table
    ordered = order_partitions(grain, partitions, order)
    canary = resolve_canary(request, ordered, grain, order)
    most = compute_chunk_bytes(rates.bytes_per_core_second, cores, project.chunk_seconds, project.chunk_bytes)
    return pack_chunks(
        ordered,
        size,
        # every chunk reads the whole of a change log, so that a log alone is no reason for another chunk
        most if project.chunk_bytes else most + _measure_logs(product, inputs),
        canary=canary,
        # a run that publishes nothing has one verdict on all of its partitions
        waves=split_into_waves(product.publish.waves, order, grain, partitions, canary) if changes_table else (),
        # the earlier output that a partition needs must be staged before the partition starts
        max_partitions=1 if own else MAX_PARTITIONS,
        kinds={name: tuple(facts.snapshot_of.get(name) for facts in inputs.values()) for name in partitions},
    )


def _measure_logs(product: Product, inputs: Mapping[str, InputState]) -> int:
    """Bytes of the change logs, as they are shared out among the partitions."""
    logs = [source.name for source in product.inputs if source.is_message_log and source.name in inputs]
    return sum(size.bytes for name in logs for size in inputs[name].partitions.values())


def _list_shared(product: Product, facts: InputState) -> list[PartitionSize]:
    """What an input adds once, not by chunk: all of it if it is read whole, or partitions wider than the product's."""
    source = next((one for one in product.inputs if one.name == facts.name), None)
    is_wider = source is not None and rule_of_input(source, product.target.grain).is_wider
    return [facts.whole] if facts.whole else list(facts.partitions.values()) if is_wider else []


def _estimate_chunks(
    project: Project,
    product: Product,
    chunks: Sequence[Chunk],
    inputs: Mapping[str, InputState],
    rates: Rates,
    cores: int,
) -> tuple[Work, Estimate]:
    """Amount of work and the estimate; inputs that several partitions share count once in the totals.

    Measured rates refer to the partitioned input of past chunks only, so the time estimate leaves out whole inputs too.
    """
    whole = [part for facts in inputs.values() for part in _list_shared(product, facts)]
    rows, size = sum(chunk.rows for chunk in chunks), sum(chunk.bytes for chunk in chunks)
    all_rows, all_size = rows + sum(part.rows for part in whole), size + sum(part.bytes for part in whole)
    known = all(facts.rows_known for facts in inputs.values())
    partitions = sum(len(chunk.partitions) for chunk in chunks)
    amount = (rows, size) if rates.is_measured else (all_rows, all_size)
    work = Work(*amount, partitions, len(chunks), known)
    found = estimate_run(work, cores, project.core_hour_usd, rates)
    return work, replace(found, rows=all_rows, bytes=all_size)


def _build_manifest(
    world: PlanContext, project: Project, ledger_id: str, chunks: tuple[Chunk, ...], parts: dict[str, bytes]
) -> Manifest | None:
    product, request = world.product, world.request
    target = build_target_pin(product, world.target, parts)
    if target is None:
        return None
    return Manifest(
        format=FORMAT,
        ledger_id=ledger_id,
        project=project.name,
        product=product.name,
        owner=product.owner,
        kind=request.kind,
        reason=request.reason,
        requested_by=request.requester,
        single_user=project.single_user,
        as_of=find_as_of(world.target, world.inputs.values()),
        partitions=world.partitions,
        order=resolve_order(request, product),
        target=target,
        inputs=tuple(build_input_pin(world, source, world.inputs[source.name], parts) for source in product.inputs),
        code=world.code,
        chunks=chunks,
        estimate=world.estimate,
        limits=project.limits,
        checks=product.checks,
        reconcile=product.reconcile,
        compare=product.compare,
        control=product.control,
        distribution=product.distribution,
        late=product.late,
        reconstruct=product.reconstruct,
        sinks={name: replace(sink, backfill=sink.decision) for name, sink in sorted(product.sinks.items())},
        row_limits=product.row_limits,
        lineage_columns=product.lineage_columns,
        made_from=product.made_from,
        consumers=tuple(one.name for one in project.list_consumers(product.name)),
        rollback_window=product.rollback_window,
        supersedes=request.supersede,
        canary=sum(len(chunk.partitions) for chunk in chunks if chunk.wave == 0),
        prove_determinism=max(product.prove_determinism, request.prove_determinism),
        tolerance=product.tolerance,
        classified=product.classified,
        approval=product.approval,
        manual=product.manual,
        restored=_build_restored(world),
        publish=_build_publish(world),
        repairs=tuple(world.repairs),
        erasure=world.erasure,
        clusters=seal_clusters(project.clusters),
    )


def _build_publish(world: PlanContext) -> Publish:
    """The product's publish settings, with the statements that create missing side tables."""
    publish, field = world.product.publish, find_partition_unit(world.product.target, world.target)
    missing = [table for table, columns in world.beside.items() if columns is None]
    made = build_create_statements(publish, world.product.target, field.transform if field else "", missing)
    return replace(publish, creates=made, waves=publish.waves if world.kind.changes_table else None)
