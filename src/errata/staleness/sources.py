"""What the inputs of a product hold now, who changed them, and when. Reads metadata and listings only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache

from errata.model.duration import to_seconds
from errata.model.graph.read_rule import rule_of_input
from errata.model.kafka.topic_reads import TopicReads
from errata.model.partition import WHOLE
from errata.model.product import Input, Product
from errata.model.table import Commit, History
from errata.planning.inputs.completeness import with_latest
from errata.ports.tables import InputState as ReadState
from errata.ports.tables import TargetState
from errata.staleness.claims import digest_definition
from errata.staleness.judgement import Explain, InputState
from errata.staleness.times import (
    InputTimes,
    Written,
    build_log_times,
    build_times,
    describe_commit,
    find_origin,
    find_written,
    is_compaction,
)
from errata.workspace import Workspace

_SHOWN = 2


def read_inputs(workspace: Workspace, product: Product, partitions: Sequence[str]) -> dict[str, ReadState]:
    """Everything that these partitions read now; own output and references of their own time are left out."""
    found = {}
    for source in product.inputs:
        if source.own or source.has_own_snapshots:
            continue
        rule = rule_of_input(source, product.target.grain)
        # without declared columns and row rules the files need not be opened
        bare = with_latest(replace(source, columns={}, eras=(), rows=()), workspace.now())
        found[source.name] = workspace.engines.inputs.read_input(
            bare, rule.input_grain, rule.list_reads(partitions) if partitions else ()
        )
    return found


def build_input_states(product: Product, read: Mapping[str, ReadState]) -> dict[str, InputState]:
    """The inputs of a product as the rule compares them."""
    return {
        source.name: build_input_state(source, product, read.get(source.name))
        for source in product.inputs
        if not source.own
    }


def build_input_state(source: Input, product: Product, read: ReadState | None) -> InputState:
    """One input; ``read`` is None for a reference that every partition reads at its own time."""
    sizes = {} if read is None else read.partitions if read.whole is None else {WHOLE: read.whole}
    return InputState(
        location=source.location,
        rule=rule_of_input(source, product.target.grain),
        fingerprints={name: size.fingerprint for name, size in sizes.items() if size.fingerprint},
        is_whole=read is not None and read.whole is not None,
        is_fixed=read is None,
        definition=digest_definition(source),
        snapshot_id=read.snapshot_id if read else None,
        topic=_build_topic_reads(source, read),
    )


def _build_topic_reads(source: Input, read: ReadState | None) -> TopicReads | None:
    if source.kafka is None or source.is_message_log or read is None or read.topic is None:
        return None
    return TopicReads.of_state(read.topic, source.kafka, read.offsets)


def build_explainer(workspace: Workspace, product: Product, changed: Mapping[tuple[str, str], set[str]]) -> Explain:
    """Says who changed partitions of an input, and leaves out those that were only compacted.

    ``changed`` has, by input and pinned snapshot, every partition that will be asked about, so that each history is
    read once.
    """
    sources = {source.name: source for source in product.inputs}

    @cache
    def read_history(name: str, snapshot: str) -> History | None:
        source, rule = sources[name], rule_of_input(sources[name], product.target.grain)
        if source.table is None or source.partition is None or source.version is not None:
            return None
        asked = sorted(changed.get((name, snapshot), ()))
        return workspace.engines.history.commits(
            source.table, source.partition, rule.input_grain, asked, since=snapshot
        )

    def explain(name: str, then: InputState, names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        history = read_history(name, then.snapshot_id) if then.snapshot_id and WHOLE not in names else None
        if history is None:
            return names, ""
        if not history.complete:
            return names, "its main no longer descends from the snapshot that was read, or that has expired"
        by = {one: [c for c in history.commits if c.touches_everything or one in c.touched] for one in names}
        really = tuple(one for one in names if not by[one] or not all(map(is_compaction, by[one])))
        writers = dict.fromkeys(_name_writer(workspace, c) for one in really for c in by[one] if not is_compaction(c))
        more = f" and {len(writers) - _SHOWN} more" if len(writers) > _SHOWN else ""
        return really, ", ".join(list(writers)[:_SHOWN]) + more

    return explain


def _name_writer(workspace: Workspace, commit: Commit) -> str:
    """A commit in words; a publication or rollback of this ledger by its run."""
    name = commit.summary.get("errata.publication")
    if name is None or not workspace.ledger.publications.exists(name):
        return describe_commit(commit)
    known = workspace.ledger.publications.get(name)
    verb = "rolled back with" if known.kind == "rollback" else "published by"
    return f"{verb} {known.run_id} (snapshot {commit.snapshot_id})"


def read_written(
    workspace: Workspace, product: Product, target: TargetState, partitions: Iterable[str]
) -> dict[str, Written]:
    """When the rows of partitions were written that nobody recorded anything about."""
    names = list(partitions)
    if not names:
        return {}
    table, column, grain = product.target.table, product.target.column, product.target.grain
    writers = {name: target.writers.get(name, ()) for name in names}
    commits = workspace.engines.history.find_commits(table, {one for each in writers.values() for one in each})
    found = {name: find_written(each, commits) for name, each in writers.items()}
    compacted = [name for name, one in found.items() if one is None]
    if compacted:
        history = workspace.engines.history.commits(table, column, grain, compacted)
        found |= {name: find_origin(name, history) for name in compacted}
    return {name: one for name, one in found.items() if one is not None}


def read_times(
    workspace: Workspace, product: Product, read: Mapping[str, ReadState], since_ms: int
) -> dict[str, InputTimes]:
    """When the inputs changed from some time on."""
    sources = {source.name: source for source in product.inputs}
    return {name: _read_times(workspace, product, sources[name], state, since_ms) for name, state in read.items()}


def _read_times(workspace: Workspace, product: Product, source: Input, state: ReadState, since_ms: int) -> InputTimes:
    if source.table is None:
        return _build_file_times(state)
    if source.version is not None:
        return InputTimes(unknown=f"nothing tells when its tag {source.version} was set")
    log = workspace.engines.history.main_log(source.table)
    if source.partition is None or state.whole is not None:
        return build_log_times(log)
    earlier = [entry.snapshot_id for entry in log if entry.at_ms < since_ms and entry.exists]
    since = earlier[-1] if earlier else None
    grain = rule_of_input(source, product.target.grain).input_grain
    history = workspace.engines.history.commits(source.table, source.partition, grain, None, since=since)
    return build_times(log, history, since)


def _build_file_times(state: ReadState) -> InputTimes:
    """The newest modification time of each partition; where versions are no times, that of all files."""
    newest: dict[str, int] = {}
    for name, files in (state.files or {}).items():
        times = [int(file.version.partition(":")[2]) // 10**6 for file in files if file.version.startswith("mtime:")]
        known = max(times) if len(times) == len(files) and times else state.newest_ms
        if known is not None:
            newest[name] = known
    return InputTimes(newest_ms=newest, is_files=True)


def find_longest_run_ms(product: Product) -> int | None:
    """The declared longest run of the live jobs."""
    text = product.live.longest_run
    return None if text is None else int(timedelta(seconds=to_seconds(text)) / timedelta(milliseconds=1))
