"""Read the change logs of a plan: which positions there are, and which the accepted runs have read.

Reads messages with Spark, and the ledger; changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from errata.commands.plan.read_references import find_decided_pins
from errata.model.change_log.declaration import ACCEPTED
from errata.model.change_log.log_pin import build_shape_schemas
from errata.model.product import Input, Product
from errata.ports.tables import InputState
from errata.workspace import Workspace


def read_change_logs(
    workspace: Workspace, product: Product, inputs: Mapping[str, InputState], partitions: Sequence[str]
) -> dict[str, InputState]:
    """The inputs, those by change data capture with what their messages hold."""
    found = dict(inputs)
    for source in product.inputs:
        ends = next((one for one in product.inputs if one.transactions_of == source.name), None)
        if source.cdc is None or ends is None or source.name not in inputs:
            continue
        since = _find_positions(workspace, product, source, partitions)
        lacking = [name for name in partitions if name not in since]
        state, transactions = inputs[source.name], inputs[ends.name]
        log = workspace.engines.change_logs.read_log(source, state, transactions, since, lacking)
        shapes = build_shape_schemas(source.cdc, source.columns, log.held)
        newest = log.facts.newest_us // 1000 or state.newest_ms
        found[source.name] = replace(state, log=log, schemas=shapes, newest_ms=newest)
    return found


def _find_positions(workspace: Workspace, product: Product, source: Input, partitions: Sequence[str]) -> dict[str, int]:
    """The position that the accepted run of each partition read, where the input asks for changes since then."""
    if source.cdc is None or source.cdc.since != ACCEPTED:
        return {}
    decided = find_decided_pins(workspace, product, source, partitions)
    return {name: int(one.pin.log.position) for name, one in decided.items() if one.pin and one.pin.log}
