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

from errata.canonical import digest_of
from errata.errors import EngineError
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
from errata.workspace import Workspace

_PRECISION = 60


def watch_publication(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Take one look, and come back until the time is over; the first call only remembers how the neighbours are."""
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
    state = _read_neighbours(workspace, manifest, publication, controls)
    if not item.progress:
        seconds = min(watch.every_seconds, watch.for_seconds)
        return Later(seconds, {"looks": 0, "before": _mark_partitions(state)})
    looks, before = item.progress["looks"] + 1, item.progress["before"]
    unusual = [
        *_read_signals(workspace, product, watch),
        *_judge_changed(workspace, manifest, controls, state, before),
    ]
    if unusual:
        return Paid({"looks": looks, "unusual": unusual}, _owe_alarm(workspace, watch, item, unusual))
    if now >= ends:
        return Paid({"looks": looks, "unusual": []})
    return Later(min(watch.every_seconds, max(1.0, (ends - now).total_seconds())), {"looks": looks, "before": before})


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


def _read_neighbours(
    workspace: Workspace, manifest: Manifest, publication: PublicationRecord, controls: Sequence[Control]
) -> TargetState | None:
    """The corrected partitions and those that are comparable with them, as main has them now."""
    if not controls:
        return None
    target, reach = manifest.target, max(rule.reach for rule in controls)
    near = {other for name in publication.partitions for other in list_comparable(target.grain, name, reach)}
    names = sort_oldest_first(target.grain, near.union(publication.partitions))
    return workspace.engines.targets.read_target(target.table, target.column, target.grain, names)


def _mark_partitions(state: TargetState | None) -> dict[str, str]:
    """A mark for each partition that changes when its files do."""
    expected = {} if state is None else state.expected
    return {name: digest_of(sorted(file.path for file in files)) for name, files in expected.items() if files}


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
    found = workspace.engines.measurer.measure(
        judged, compile_plan(judged), candidate_snapshot=state.base_snapshot_id, prior_snapshot=state.base_snapshot_id
    )
    numbers = MeasurementIndex({(one.scope, one.partition, one.name): one for one in found})
    with localcontext(prec=_PRECISION):
        for name in judged.partitions:
            for rule in controls:
                result = judge_control(rule, name, judged, numbers)
                # without a score there was nothing to compare with, which is no news
                if result.level != OK and result.value is not None:
                    yield {"partition": name, "rule": rule.name, "found": result.message}


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
