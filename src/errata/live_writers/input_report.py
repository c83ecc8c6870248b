"""What a live job read and wrote, recorded so that `errata stale` need not go by commit times. No JVM.

The inputs are read before the job reads them. If one changes meanwhile, the record says less than the job read, and
the partition counts as stale: an error on the safe side. The output is read when the job has committed, and recorded
only if every commit to its partitions since was the job's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from errata.canonical import to_plain
from errata.live_writers.foreign_commits import find_live_job
from errata.model.audit import Actor
from errata.model.partition import WHOLE
from errata.model.product import Product
from errata.ports.tables import InputState
from errata.staleness.claims import REPORTED_ACTION
from errata.staleness.sources import read_inputs
from errata.workspace import Workspace

_KEYS = ("table", "files", "partition", "grain", "lookback", "lookahead", "reference", "version")


@dataclass(frozen=True, slots=True)
class Reading:
    """The inputs of some partitions, and main's head, before a job began."""

    product: Product
    partitions: tuple[str, ...]
    inputs: dict[str, Any]
    head: str | None
    read_ms: int


def read_for_report(workspace: Workspace, table: str, partitions: Sequence[str]) -> Reading:
    """Read what these partitions are computed from, before the job does."""
    product = workspace.product_of(table)
    read = read_inputs(workspace, product, partitions)
    sources = {source.name: source for source in product.inputs}
    inputs = {
        name: {
            "source": {key: to_plain(getattr(sources[name], key)) for key in _KEYS if getattr(sources[name], key)},
            "fingerprints": _list_fingerprints(state),
            "snapshot_id": state.snapshot_id,
        }
        for name, state in read.items()
    }
    head = workspace.engines.pins.refs(product.target.table).get("main")
    return Reading(product, tuple(partitions), inputs, head, int(workspace.now().timestamp() * 1000))


def _list_fingerprints(state: InputState) -> dict[str, str]:
    sizes = state.partitions if state.whole is None else {WHOLE: state.whole}
    return {name: size.fingerprint for name, size in sizes.items() if size.fingerprint}


def record_report(workspace: Workspace, actor: Actor, reading: Reading, job: str) -> str:
    """Record what a job read and wrote; returns why nothing was recorded, or the empty text."""
    target = reading.product.target
    history = workspace.engines.history.commits(
        target.table, target.column, target.grain, reading.partitions, since=reading.head
    )
    others = [one for one in history.commits if find_live_job(one.summary, [job]) is None]
    if not history.complete or others:
        return f"another commit to the partitions came in between, or one that does not name the job {job}"
    if not history.commits:
        return "the job committed nothing to the partitions"
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, reading.partitions)
    if state.base_snapshot_id != history.line[0]:
        return "another commit came in between"
    files = {name: [[one.path, one.rows, one.content] for one in held] for name, held in state.expected.items()}
    body = {
        "job": job, "table": target.table, "snapshot_id": state.base_snapshot_id, "read_ms": reading.read_ms,
        "files": files, "inputs": reading.inputs,
    }  # fmt: skip
    workspace.ledger.audit.note(None, actor, REPORTED_ACTION, body)
    return ""
