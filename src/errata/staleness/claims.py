"""What the ledger has on record about how partitions came about, as far as it is about their live files. Reads only.

A publication speaks for a partition while its live files are exactly those that it committed, an attestation while they
are those that it compared, and a live job while they are those that it reported. Compaction rewrites files and keeps
rows, so it silences nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from errata.canonical import digest_of, from_plain
from errata.ledger import AcceptanceRecord
from errata.model.graph.read_rule import ReadRule, rule_of_input, rule_of_pin
from errata.model.kafka.topic_range import OffsetsPart
from errata.model.kafka.topic_reads import TopicReads
from errata.model.kind import ATTEST
from errata.model.manifest import Code, ExpectedFile, InputPin, Manifest
from errata.model.partition import WHOLE, Grain
from errata.model.product import READ_AT_ITS_TIME, Input, Product
from errata.model.rebase import split_by_rebase
from errata.model.run import RunState
from errata.model.side_tables import is_side_table_mode
from errata.model.table import FileSets
from errata.planning.repin import input_from_pin
from errata.ports.tables import TargetState
from errata.publishing.conflict import classify_changes, find_changed_partitions
from errata.publishing.intent import Intent
from errata.staleness.judgement import RECORDED, REPORTED, Claim, CodeState, InputState
from errata.staleness.used_code import digest_used_code
from errata.workspace import Workspace

REPORTED_ACTION = "live.reported"
"""Audit action with what a live job read and wrote."""
CodeReader = Callable[[Code], CodeState]


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim, and the files that each partition had when it was made."""

    claim: Claim
    files: FileSets
    snapshot_id: str | None  # main's head then


def list_claims(workspace: Workspace, product: Product, target: TargetState) -> dict[str, tuple[Claim, ...]]:
    """Claims that speak for the partitions of a product as they are now, the newest first."""
    found: dict[str, list[Claim]] = {}
    for statement in _iterate_statements(workspace, product):
        for name in _find_unchanged(workspace, product, target, statement):
            found.setdefault(name, []).append(statement.claim)
    return {name: tuple(sorted(claims, key=lambda one: -one.at_ms)) for name, claims in found.items()}


def _find_unchanged(workspace: Workspace, product: Product, target: TargetState, statement: Statement) -> Iterator[str]:
    """Partitions whose live files are those of the statement, or a compaction of them."""
    live = {name: target.expected.get(name, ()) for name in statement.files}
    changed = set(find_changed_partitions(statement.files, live))
    yield from (name for name in statement.files if name not in changed)
    if not changed or statement.snapshot_id is None:
        return
    table, column, grain = product.target.table, product.target.column, product.target.grain
    names = sorted(changed)
    history = workspace.engines.history.commits(table, column, grain, names, since=statement.snapshot_id)
    if history.complete:
        # where commits cannot tell, content could; but here no data file is opened
        yield from classify_changes(
            names, history, statement.files, live, shares_files=bool(target.shared_files)
        ).compacted


def _iterate_statements(workspace: Workspace, product: Product) -> Iterator[Statement]:
    code = _build_code_reader(workspace)
    yield from _iterate_publications(workspace, product, code)
    yield from _iterate_attestations(workspace, product, code)
    yield from _iterate_reports(workspace, product)


def _iterate_publications(workspace: Workspace, product: Product, code: CodeReader) -> Iterator[Statement]:
    ledger = workspace.ledger
    by_publication: dict[str, list[AcceptanceRecord]] = {}
    for row in ledger.partitions.accepted(product.target.table).values():
        if row.run_id is not None:
            by_publication.setdefault(row.pub_id, []).append(row)
    # a run in waves has many publications, and its manifest is long
    read_manifest = cache(ledger.runs.manifest)
    read_claims = cache(lambda run_id: tuple(_split_claims(workspace, run_id, read_manifest(run_id), code)))
    for pub_id, rows in by_publication.items():
        publication = ledger.publications.get(pub_id)
        intent = Intent.from_dict(json.loads(ledger.parts.get(publication.detail)))
        by_run: dict[str, set[str]] = {}
        for row in rows:
            by_run.setdefault(row.run_id or "", set()).add(row.partition)
        for run_id, names in by_run.items():
            manifest = read_manifest(run_id)
            files, snapshot = _list_files(workspace, manifest, intent, names), publication.result_snapshot_id
            if is_side_table_mode(manifest.publish):
                snapshot = manifest.target.base_snapshot_id
            for claim, held in read_claims(run_id):
                kept = {name: files[name] for name in held if name in names}
                yield Statement(replace(claim, at_ms=to_ms(rows[0].at)), kept, snapshot)


def _list_files(
    workspace: Workspace, manifest: Manifest, intent: Intent, names: Iterable[str]
) -> Mapping[str, tuple[ExpectedFile, ...]]:
    """Files of main that the partitions had after the publication."""
    if is_side_table_mode(manifest.publish):  # main was not changed, so it has to be as the plan found it
        return _read_expected(workspace, manifest, names)
    return {name: intent.add.get(name, ()) for name in names}


def _iterate_attestations(workspace: Workspace, product: Product, code: CodeReader) -> Iterator[Statement]:
    """Only the newest attestation of a partition: an older one was about other files, or about other inputs."""
    seen: set[str] = set()
    for run in workspace.ledger.runs.list(product=product.name, states={RunState.ATTESTED}):
        names = set(run.partitions) - seen if run.kind == ATTEST else set()
        if not names:
            continue
        seen |= names
        manifest = workspace.ledger.runs.manifest(run.run_id)
        files = _read_expected(workspace, manifest, names)
        for claim, held in _split_claims(workspace, run.run_id, manifest, code, to_ms(run.updated_at)):
            kept = {name: files[name] for name in held if name in names}
            yield Statement(claim, kept, manifest.target.base_snapshot_id)


def _split_claims(
    workspace: Workspace, run_id: str, manifest: Manifest, code: CodeReader, at_ms: int = 0
) -> Iterator[tuple[Claim, tuple[str, ...]]]:
    """What a run claims, by partitions with equal pins."""
    if manifest.restored is not None:
        whence = manifest.restored.origin or "an older snapshot"
        why = f"{run_id} put back rows of {whence}, and their inputs are not on record"
        yield Claim(RECORDED, run_id, at_ms, None, unknown=why), manifest.partitions
        return
    planned_ms = to_ms(workspace.ledger.runs.get(run_id).planned_at)
    for piece in split_by_rebase(manifest, workspace.ledger.rebases.list(run_id)):
        grain = manifest.target.grain
        inputs = {
            pin.name: _state_of_pin(workspace, pin, rule_of_pin(pin, grain)) for pin in piece.inputs if not pin.own
        }
        claim = Claim(RECORDED, run_id, at_ms, inputs, code(manifest.code), as_of_ms=planned_ms)
        yield claim, piece.partitions


def _state_of_pin(workspace: Workspace, pin: InputPin, rule: ReadRule) -> InputState:
    return InputState(
        location=pin.location,
        rule=rule,
        fingerprints=pin.fingerprints,
        is_whole=pin.partition is None or WHOLE in pin.fingerprints,
        is_fixed=pin.reference in READ_AT_ITS_TIME,
        definition=digest_definition(input_from_pin(pin)),
        snapshot_id=pin.snapshot_id,
        topic=_read_topic(workspace, pin),
    )


def _read_topic(workspace: Workspace, pin: InputPin) -> TopicReads | None:
    """The offsets that a run sealed for each partition of a topic."""
    if pin.topic is None or pin.partition is None or pin.files_part is None:
        return None
    listed = json.loads(workspace.ledger.parts.get(pin.files_part))
    return TopicReads.of_pin(pin.topic, from_plain(OffsetsPart, listed))  # type: ignore[type-abstract]


def digest_definition(source: Input) -> str:
    """Digest of what a product file says about how rows of an input are read, apart from which ones."""
    rules = [[rule.name, rule.expression, rule.action] for rule in source.rows]
    log = [source.cdc] if source.cdc is not None else []
    return digest_of([source.partition, source.reference, source.columns, source.eras, rules, *log])


def _iterate_reports(workspace: Workspace, product: Product) -> Iterator[Statement]:
    """Only the newest report about a partition."""
    grain, seen = product.target.grain, set[str]()
    for entry in reversed(workspace.ledger.audit.readable_entries(actions=(REPORTED_ACTION,))):
        body = entry.body
        if body["table"] != product.target.table:
            continue
        files = {name: tuple(ExpectedFile(*file) for file in held) for name, held in body["files"].items()}
        fresh = {name: held for name, held in files.items() if name not in seen}
        seen |= fresh.keys()
        inputs = {name: parse_reported_input(name, told, grain) for name, told in body["inputs"].items()}
        claim = Claim(REPORTED, str(body["job"]), to_ms(entry.at), inputs, as_of_ms=int(body["read_ms"]))
        yield Statement(claim, fresh, str(body["snapshot_id"]))


def parse_reported_input(name: str, told: Mapping[str, Any], grain: Grain) -> InputState:
    """An input as a live job read it."""
    source = from_plain(Input, {"name": name, **told["source"]})
    return InputState(
        location=source.location,
        rule=rule_of_input(source, grain),
        fingerprints=told["fingerprints"],
        is_whole=source.partition is None or WHOLE in told["fingerprints"],
        is_fixed=source.has_own_snapshots,
        snapshot_id=told["snapshot_id"],
    )


def _read_expected(
    workspace: Workspace, manifest: Manifest, names: Iterable[str]
) -> Mapping[str, tuple[ExpectedFile, ...]]:
    listed = json.loads(workspace.ledger.parts.get(manifest.target.expected_part))
    return {name: tuple(from_plain(ExpectedFile, file) for file in listed.get(name, ())) for name in names}


def _build_code_reader(workspace: Workspace) -> CodeReader:
    @cache
    def read_used(digest: str, call: str) -> str:
        content = workspace.ledger.parts.get(digest)
        return digest_used_code(content, call) if content else ""

    return lambda code: CodeState(code.call, code.version, code.config_digest, read_used(code.zip_digest, code.call))


def read_code(workspace: Workspace, product: Product) -> CodeState:
    """The code of the product as it is now."""
    code, content = workspace.engines.code(product)
    return CodeState(code.call, code.version, code.config_digest, digest_used_code(content, code.call))


def to_ms(at: str) -> int:
    """An instant of the ledger in milliseconds since 1970."""
    return int(datetime.fromisoformat(at).timestamp() * 1000)
