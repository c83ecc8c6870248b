"""What a live job read and wrote, recorded so that `errata stale` need not go by commit times. No JVM.

The inputs are read before the job reads them. If one changes meanwhile, the record says less than the job read, and
the partition counts as stale: an error on the safe side. The output is read when the job has committed, and recorded
only if every commit to its partitions since was the job's own, and only of partitions that it wrote whole: rows from
before were computed from something else. Of two calls of a job at once, only the one that read first may report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from errata.canonical import to_plain
from errata.live_writers.foreign_commits import find_live_job
from errata.model.audit import Actor
from errata.model.partition import WHOLE, format_ranges
from errata.model.product import Product
from errata.model.table import History
from errata.ports.tables import InputState, TargetState
from errata.staleness.claims import REPORTED_ACTION
from errata.staleness.sources import read_inputs
from errata.workspace import Workspace

_KEYS = ("table", "files", "recording", "partition", "grain", "lookback", "lookahead", "reference", "version")


@dataclass(frozen=True, slots=True)
class Reading:
    """The inputs of some partitions, and main's head, before a job began."""

    product: Product
    partitions: tuple[str, ...]
    inputs: dict[str, Any]
    head: str | None
    read_ms: int
    beside: tuple[str, ...] = ()  # other jobs that could write the partitions then


def read_for_report(workspace: Workspace, table: str, partitions: Sequence[str], token: str) -> Reading:
    """Read what these partitions are computed from, before the job does; ``token`` is that of its lease."""
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
    read_ms = int(workspace.now().timestamp() * 1000)
    beside = workspace.ledger.freezes.find_live_writes(product.target.table, partitions, beside=token)
    return Reading(product, tuple(partitions), inputs, head, read_ms, tuple(one.owner.name for one in beside))


def _list_fingerprints(state: InputState) -> dict[str, str]:
    sizes = state.partitions if state.whole is None else {WHOLE: state.whole}
    return {name: size.fingerprint for name, size in sizes.items() if size.fingerprint}


def record_report(workspace: Workspace, actor: Actor, reading: Reading, job: str) -> str:
    """Record what a job read and wrote; returns what was not recorded and why, or the empty text."""
    target, nothing = reading.product.target, f"what {job} read was not recorded"
    if reading.beside:
        return f"{nothing}: {', '.join(reading.beside)} held a lease on the same partitions when it began"
    history = workspace.engines.history.commits(
        target.table, target.column, target.grain, reading.partitions, since=reading.head
    )
    others = [one for one in history.commits if find_live_job(one.summary, [job]) is None]
    if not history.complete or others:
        return f"{nothing}: another commit to the partitions came in between, or one that does not name the job {job}"
    if not history.commits:
        return f"{nothing}: the job committed nothing to the partitions"
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, reading.partitions)
    if state.base_snapshot_id != history.line[0]:
        return f"{nothing}: another commit came in between"
    whole = [name for name in reading.partitions if _is_written_whole(name, state, history)]
    files = {name: [[one.path, one.rows, one.content] for one in state.expected[name]] for name in whole}
    body = {
        "job": job, "table": target.table, "snapshot_id": state.base_snapshot_id, "read_ms": reading.read_ms,
        "files": files, "inputs": reading.inputs,
    }  # fmt: skip
    if files:
        workspace.ledger.audit.note(None, actor, REPORTED_ACTION, body)
    rest = [name for name in reading.partitions if name not in files]
    told = "the job did not write it, or left rows from before in it"
    return f"{nothing} of {format_ranges(target.grain, rest, 6)}: {told}" if rest else ""


def _is_written_whole(partition: str, state: TargetState, history: History) -> bool:
    """Whether everything that a partition holds is from these commits; an empty one must have been emptied by them."""
    writers = state.writers.get(partition, ())
    if not writers:
        return any(one.touches_everything or partition in one.touched for one in history.commits)
    return {*writers} <= {one.snapshot_id for one in history.commits}
