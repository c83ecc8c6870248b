"""Pay ``watch``: for a while after a publication, look at what live jobs write next to it and at health signals.

Each look judges the control rules of the product on comparable partitions that changed since the publication. Corrected
partitions are among their controls, so either side that is wrong is noticed. The first unusual number ends the watch
with an alarm; nothing is rolled back by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from errata.delivery.occasions import is_classified
from errata.errors import EngineError, NotFound
from errata.gate.verdict.control import judge_control
from errata.gate.verdict.findings import OK, MeasurementIndex
from errata.ledger import OutboxItem, PublicationRecord
from errata.model.audit import Actor
from errata.model.consumer.declaration import UNUSUAL
from errata.model.consumer.outbox import Effect, Later, Owed, Paid, Payment
from errata.model.manifest import Manifest
from errata.model.partition import list_comparable, sort_oldest_first
from errata.model.product import Control, Product
from errata.model.product.watch import Watch
from errata.ports.tables import TargetState
from errata.text.numbers import format_moment
from errata.workspace import Workspace

_PRECISION = 60


def watch_publication(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Take one look, and come back until the time is over; the first call only remembers how the neighbours were."""
    publication = workspace.ledger.publications.get(item.pub_id or "")
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    product = workspace.project.products.get(manifest.product)
    if product is None or product.watch is None:
        return Paid({"ended": "the product no longer declares a watch"})
    accepted = workspace.ledger.partitions.accepted(publication.table, publication.partitions)
    if not any((one.origin_pub_id or one.pub_id) == publication.pub_id for one in accepted.values()):
        return Paid({"ended": "nothing of the publication is current any more"})
    watch, controls = product.watch, _choose_controls(product)
    now = datetime.fromisoformat(workspace.ledger.now())
    ends = datetime.fromisoformat(publication.settled_at or "") + timedelta(seconds=watch.for_seconds)
    names, waits = _list_near(manifest, publication, controls), f"it is watched until {format_moment(str(ends))} UTC"
    if not item.progress:
        before = _mark_as_published(workspace, manifest, publication, names)
        return Later(min(watch.every_seconds, watch.for_seconds), {"looks": 0, "before": before}, waits)
    state = _read_target(workspace, manifest, names)
    looks, before = item.progress["looks"] + 1, item.progress["before"]
    unusual = [
        *_read_signals(workspace, product, watch),
        *_judge_changed(workspace, manifest, controls, state, before),
    ]
    if unusual:
        return Paid({"looks": looks, "unusual": unusual}, _owe_alarm(workspace, watch, item, unusual))
    if now >= ends:
        return Paid({"looks": looks, "unusual": []})
    seconds = min(watch.every_seconds, max(1.0, (ends - now).total_seconds()))
    return Later(seconds, {"looks": looks, "before": before}, waits)


def _owe_alarm(
    workspace: Workspace, watch: Watch, item: OutboxItem, unusual: Sequence[Mapping[str, Any]]
) -> tuple[Owed, ...]:
    rollback = f'errata rollback {item.run_id} --reason "…"' if watch.suggest_rollback else ""
    found = [": ".join((one["partition"], one["found"])) if "partition" in one else one["found"] for one in unusual]
    payload = {"channel": watch.channel, "unusual": [workspace.project.redact(text) for text in found]}
    return (Owed(Effect.TELL, UNUSUAL, "watch", item.partitions, payload | {"rollback": rollback}),)


def _choose_controls(product: Product) -> tuple[Control, ...]:
    chosen = product.watch.metrics if product.watch else ()
    return tuple(rule for rule in product.control if not chosen or rule.name in chosen)


def _list_near(manifest: Manifest, publication: PublicationRecord, controls: Sequence[Control]) -> tuple[str, ...]:
    """The corrected partitions and those that are comparable with them; none without a rule that compares."""
    if not controls:
        return ()
    grain, reach = manifest.target.grain, max(rule.reach for rule in controls)
    near = {other for name in publication.partitions for other in list_comparable(grain, name, reach)}
    return sort_oldest_first(grain, near.union(publication.partitions))


def _read_target(workspace: Workspace, manifest: Manifest, names: Sequence[str]) -> TargetState | None:
    """These partitions as main has them now."""
    target = manifest.target
    return workspace.engines.targets.read_target(target.table, target.column, target.grain, names) if names else None


def _mark_as_published(
    workspace: Workspace, manifest: Manifest, publication: PublicationRecord, names: Sequence[str]
) -> dict[str, str]:
    """Marks of the partitions right after the publication, however late the first look is."""
    target, snapshot = manifest.target, publication.result_snapshot_id
    try:
        if names and snapshot:
            past = workspace.engines.history.held(target.table, target.column, target.grain, names, snapshot)
            return {name: size.fingerprint for name, size in past.partitions.items()}
    except NotFound:
        pass  # it has expired, or the publication left the table untouched
    return _mark_partitions(_read_target(workspace, manifest, names))


def _mark_partitions(state: TargetState | None) -> dict[str, str]:
    """A mark for each partition that changes when its files do."""
    return {} if state is None else {name: state.fingerprints[name] for name, files in state.expected.items() if files}


def _judge_changed(
    workspace: Workspace,
    manifest: Manifest,
    controls: Sequence[Control],
    state: TargetState | None,
    before: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Unusual numbers of partitions that changed since the publication."""
    if state is None or state.base_snapshot_id is None:
        return
    held = {name: mark for name, mark in _mark_partitions(state).items() if state.partitions[name].rows}
    changed = [name for name, mark in held.items() if mark != before.get(name)]
    if not changed:
        return
    from errata.gate.measure.scan_plan import compile_plan

    usable = held.keys() - set(changed)
    reach = max(rule.reach for rule in controls)
    grain = manifest.target.grain
    judged = replace(
        manifest,
        partitions=sort_oldest_first(grain, changed),
        inputs=(), checks=(), reconcile=(), compare=(), distribution=(), control=tuple(controls),
        control_partitions={
            name: tuple(other for other in list_comparable(grain, name, reach) if other in usable) for name in changed
        },
    )  # fmt: skip
    measured = workspace.engines.measurer.measure(
        judged, compile_plan(judged), candidate_snapshot=state.base_snapshot_id, prior_snapshot=state.base_snapshot_id
    )
    numbers = MeasurementIndex({(one.scope, one.partition, one.name): one for one in measured})
    with localcontext(prec=_PRECISION):
        for name in judged.partitions:
            for rule in controls:
                result = judge_control(rule, name, judged, numbers)
                # without a score there was nothing to compare with, which is no news
                if result.level != OK and result.value is not None:
                    hidden = is_classified(workspace, manifest, rule.metric)
                    found = f"{rule.metric} is unusual; its numbers are classified" if hidden else result.message
                    yield {"partition": name, "rule": rule.name, "found": found}


def _read_signals(workspace: Workspace, product: Product, watch: Watch) -> Iterator[dict[str, Any]]:
    for signal in (*product.health, *workspace.project.health):
        if signal.name not in watch.health or signal.pause_above is None:
            continue
        try:
            value = workspace.engines.probes.read(signal)
        except EngineError as error:
            yield {"signal": signal.name, "found": error.message}
            continue
        if value > Decimal(signal.pause_above):
            yield {"signal": signal.name, "found": f"{signal.name} is {value}, above {signal.pause_above}"}
