"""Late data: detect changes to a run's inputs after they were pinned, at validate and publish; starts no JVM.

Late data is a warning, never a refusal: the run computed what was approved, and the publisher can plan again the
partitions that are behind their source. Only inputs that are read by partition are checked; reference data and named
versions stay as approved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from errata.canonical import digest_of, from_plain, to_plain
from errata.ledger import RunRecord
from errata.model.graph.read_rule import rule_of_pin
from errata.model.kafka.topic_range import OffsetsPart
from errata.model.kafka.topic_reads import TopicReads, count_new_records, has_other_records
from errata.model.manifest import InputPin, Manifest, SourceFile
from errata.model.partition import WHOLE, Grain, sort_oldest_first
from errata.model.rebase import split_by_rebase
from errata.model.table import Commit
from errata.planning.repin import input_from_pin, needs_repin
from errata.ports.tables import InputState
from errata.text.exceptions import first_line
from errata.views import LateInputView
from errata.workspace import RunContext, Workspace

LATE_INPUT_SEEN = "input.late"
_MAX_NAMED_FILES = 5
"""Number of files listed by name; the rest are only counted."""


def notice_late_inputs(context: RunContext, scope: Sequence[str], seen_by: str) -> tuple[LateInputView, ...]:
    """Compare the pinned inputs of these partitions with the current sources; returns changes and records new ones.

    Errors are reported and stop nothing.
    """
    try:
        found = tuple(_find_late_inputs(context.workspace, context.run, context.manifest, scope))
        known = {(one.input, one.change) for one in read_late_inputs(context.workspace, context.run)}
        if new := [one for one in found if (one.input, one.change) not in known]:
            told = [{key: value for key, value in to_plain(one).items() if not key.startswith("seen")} for one in new]
            context.ledger.audit.note(
                context.run_id, context.actor, LATE_INPUT_SEEN, {"seen_by": seen_by, "inputs": told}
            )
    except Exception as error:  # noqa: BLE001  a source that cannot be read now was read when it was pinned
        context.workspace.narrate(f"the inputs of {context.run_id} were not looked at again: {first_line(error)}")
        return ()
    return found


def read_late_inputs(workspace: Workspace, run: RunRecord) -> tuple[LateInputView, ...]:
    """Late inputs recorded for this run, oldest first."""
    return tuple(
        replace(from_plain(LateInputView, one), seen_at=entry.at, seen_by=str(entry.body["seen_by"]))
        for entry in workspace.ledger.audit.readable_entries(run.run_id, actions=(LATE_INPUT_SEEN,))
        for one in entry.body["inputs"]
    )


def _find_late_inputs(
    workspace: Workspace, run: RunRecord, manifest: Manifest, scope: Sequence[str]
) -> Iterator[LateInputView]:
    if manifest.restored is not None:  # a restore reads the table itself, at a snapshot that a person chose
        return
    wanted = set(scope)
    for piece in split_by_rebase(manifest, workspace.ledger.rebases.list(run.run_id)):
        names = [name for name in piece.partitions if name in wanted]
        for pin in filter(needs_repin, piece.inputs) if names else ():
            rule = rule_of_pin(pin, manifest.target.grain)
            find = _FINDERS[pin.kind]
            found = find(workspace, pin, rule.input_grain, rule.list_reads(names))
            yield from (replace(one, grain=rule.input_grain.value) for one in found)


def _find_late_commits(
    workspace: Workspace, pin: InputPin, grain: Grain, asked: Sequence[str]
) -> Iterator[LateInputView]:
    head = workspace.engines.pins.refs(pin.location).get("main")
    if head is None or head == pin.snapshot_id:
        return
    history = workspace.engines.history.commits(pin.location, pin.partition or "", grain, asked, since=pin.snapshot_id)
    if not history.complete:
        facts = _read_input_now(workspace, pin, grain, asked)
        now = {name: size.fingerprint for name, size in facts.partitions.items()}
        changed = (
            [name for name in asked if now.get(name) != pin.fingerprints.get(name)] if facts.whole is None else asked
        )
        if changed:
            yield LateInputView(pin.name, pin.location, sort_oldest_first(grain, changed), head)
        return
    for commit in history.commits:
        if commit.operation != "replace":  # compaction adds no rows
            yield _late_commit_view(pin, grain, asked, commit)


def _late_commit_view(pin: InputPin, grain: Grain, asked: Sequence[str], commit: Commit) -> LateInputView:
    names = asked if commit.touches_everything else [name for name in asked if name in commit.touched]
    return LateInputView(
        pin.name,
        pin.location,
        sort_oldest_first(grain, names),
        commit.snapshot_id,
        datetime.fromtimestamp(commit.at_ms / 1000, UTC).isoformat(timespec="seconds"),
        commit.application,
        commit.operation,
        withdrawn=commit.summary.get("errata.kind") == "rollback",
    )


def _find_late_files(
    workspace: Workspace, pin: InputPin, grain: Grain, asked: Sequence[str]
) -> Iterator[LateInputView]:
    then = _index_by_path(_read_pinned_files(workspace, pin), asked)
    now = _index_by_path(_read_input_now(workspace, pin, grain, asked).files or {}, asked)
    new = sorted(set(now) - set(then))
    missing = sorted(set(then) - set(now))
    changed = sorted(path for path in set(now) & set(then) if _state(now[path][1]) != _state(then[path][1]))
    if not (new or missing or changed):
        return
    names = {(now.get(path) or then[path])[0] for path in (*new, *changed, *missing)}
    differ = [[path, *_state(now[path][1])] for path in (*new, *changed)] + [[path] for path in missing]
    yield LateInputView(
        pin.name,
        pin.location,
        sort_oldest_first(grain, names) if names <= set(asked) else tuple(sorted(names)),
        digest_of(differ),
        new_files=len(new),
        changed_files=len(changed),
        missing_files=len(missing),
        files=(*new, *changed, *missing)[:_MAX_NAMED_FILES],
    )


def _find_late_records(
    workspace: Workspace, pin: InputPin, grain: Grain, asked: Sequence[str]
) -> Iterator[LateInputView]:
    """Partitions for which other offsets would be sealed now, with how many records came; retention does not count."""
    facts = _read_input_now(workspace, pin, grain, asked)
    now = {name: size.fingerprint for name, size in facts.partitions.items()}
    changed = [name for name in asked if now.get(name) != pin.fingerprints.get(name)]
    records = 0
    if pin.topic is not None and facts.topic is not None and not pin.is_message_log and pin.files_part:
        listed = json.loads(workspace.ledger.parts.get(pin.files_part))
        read = TopicReads.of_pin(pin.topic, from_plain(OffsetsPart, listed))  # type: ignore[type-abstract]
        here = TopicReads.of_state(facts.topic, pin.topic.declared, facts.offsets)
        changed = [name for name in changed if has_other_records(read, here, name)]
        # neighbouring partitions share records, so that a sum would count some twice
        records = max((count_new_records(read, here, name) for name in changed), default=0)
    if changed:
        differ = digest_of([[name, now.get(name)] for name in changed])
        yield LateInputView(
            pin.name, pin.location, sort_oldest_first(grain, changed), differ, topic=pin.location, records=records
        )


_FINDERS = {"table": _find_late_commits, "files": _find_late_files, "kafka": _find_late_records}


def _read_pinned_files(workspace: Workspace, pin: InputPin) -> Mapping[str, Sequence[SourceFile]]:
    """Pinned files of an input, by partition."""
    listed = json.loads(workspace.ledger.parts.get(pin.files_part)) if pin.files_part else {}
    return {name: [from_plain(SourceFile, file) for file in files] for name, files in listed.items()}


def _index_by_path(
    files: Mapping[str, Sequence[SourceFile]], asked: Sequence[str]
) -> dict[str, tuple[str, SourceFile]]:  # fmt: skip
    wanted = {*asked, WHOLE}
    return {file.path: (name, file) for name, listed in files.items() if name in wanted for file in listed}


def _state(file: SourceFile) -> tuple[int, str]:
    return file.size, file.version


def _read_input_now(workspace: Workspace, pin: InputPin, grain: Grain, asked: Sequence[str]) -> InputState:
    # without declared columns and row rules the files need not be opened
    bare = replace(input_from_pin(pin), columns={}, eras=(), rows=())
    return workspace.engines.inputs.read_input(bare, grain, asked)
