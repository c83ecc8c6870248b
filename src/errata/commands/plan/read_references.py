"""Read an input whose snapshot depends on the partition: find the snapshots, then the state at each of them.

Reads table metadata and the ledger; opens no data file, starts no JVM, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.model.graph.read_rule import rule_of_input
from errata.model.partition import Grain
from errata.model.product import Input, Product
from errata.model.rebase import latest_by_partition
from errata.planning.inputs.references import (
    DecidedPin,
    ResolvedSnapshots,
    find_decided,
    find_read_snapshot,
    find_recorded,
    merge_states,
)
from errata.ports.tables import InputState
from errata.workspace import Workspace


def read_reference(
    workspace: Workspace, product: Product, source: Input, grain: Grain, partitions: Sequence[str]
) -> InputState:
    """State of a table that every partition reads at a snapshot of its own time."""
    table, log = source.table or "", workspace.engines.history.main_log(source.table or "")
    if source.reference == "as_recorded":
        found = find_recorded(grain, partitions, log)
    else:
        decided = find_decided_pins(workspace, product, source, partitions)
        read = {find_read_snapshot(one.pin, name) for name, one in decided.items() if one.pin}
        exists = {one: workspace.engines.pins.snapshot_exists(table, one) for one in sorted(filter(None, read))}
        found = find_decided(partitions, decided, table, exists)
    return _read_states(workspace, source, grain, partitions, found, [entry.snapshot_id for entry in log])


def _read_states(
    workspace: Workspace,
    source: Input,
    grain: Grain,
    partitions: Sequence[str],
    found: ResolvedSnapshots,
    log: Sequence[str],
) -> InputState:
    def read(snapshot: str | None, names: Sequence[str]) -> InputState:
        rule = rule_of_input(source, grain)
        named = replace(source, snapshot_id=snapshot)
        return workspace.engines.inputs.read_input(named, rule.input_grain, rule.list_reads(names))

    groups = found.group()
    if not groups:
        return merge_states(read(None, partitions), {}, found)
    # main may have been set back, so the order of the log decides; a snapshot that main no longer knows is older
    order = {snapshot: n for n, snapshot in enumerate(log)}
    newest = max(groups, key=lambda snapshot: order.get(snapshot, -1))
    if source.partition is None:
        return merge_states(read(newest, partitions), {}, found)
    states = {snapshot: read(snapshot, names) for snapshot, names in groups.items()}
    return merge_states(states[newest], states, found)


def find_decided_pins(
    workspace: Workspace, product: Product, source: Input, partitions: Sequence[str]
) -> dict[str, DecidedPin]:
    """What the accepted run of each partition read as this input; partitions that no run decided are left out."""
    ledger, found = workspace.ledger, dict[str, DecidedPin]()
    by_run: dict[str, list[str]] = {}
    for name, row in ledger.partitions.accepted(product.target.table, partitions).items():
        if row.run_id is not None:
            by_run.setdefault(row.run_id, []).append(name)
    for run_id, names in by_run.items():
        planned = {pin.name: pin for pin in ledger.runs.manifest(run_id).inputs}
        rebases = latest_by_partition(ledger.rebases.list(run_id))
        for name in names:
            again = {pin.name: pin for pin in rebases[name].inputs} if name in rebases else {}
            pin = again.get(source.name, planned.get(source.name))
            found[name] = DecidedPin(run_id, pin if pin is not None and pin.location == source.location else None)
    return found
