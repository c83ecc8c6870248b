"""Write the events of moments from the record: what ran, what it read at which version, what it wrote and judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from errata.delivery.lineage.datasets import build_input, build_output, name_table
from errata.ledger import AttemptRecord, CandidateRecord, OutboxItem, PublicationRecord, RunRecord, VerdictRecord
from errata.log_fields import describe_run
from errata.model.audit import Actor
from errata.model.lineage.event import Assertion, DatasetUse, LineageEvent, RunKey
from errata.model.lineage.moments import EventKind, Moment, Subject
from errata.model.manifest import Manifest
from errata.model.run import PublicationState
from errata.model.side_tables import find_landing_pin, find_side_table
from errata.workspace import Workspace

_OUTPUTS = frozenset({EventKind.RUNNING, EventKind.COMPLETE})


def build_events(
    workspace: Workspace, actor: Actor, item: OutboxItem, moments: Sequence[Moment]
) -> tuple[LineageEvent, ...]:
    """The events of these moments, in order; always the same for the same moments."""
    run = workspace.ledger.runs.get(item.run_id)
    record = _Record(workspace, run, workspace.ledger.runs.manifest(item.run_id, actor))
    return tuple(event for moment in moments for event in record.tell(moment))


@dataclass
class _Record:
    """What the ledger knows about a run; each part is read once."""

    workspace: Workspace
    run: RunRecord
    manifest: Manifest

    @cached_property
    def attempts(self) -> dict[tuple[str, int], AttemptRecord]:
        return {(one.chunk_id, one.fence): one for one in self.workspace.ledger.progress.attempts(self.run.run_id)}

    @cached_property
    def publications(self) -> dict[str, PublicationRecord]:
        return {one.pub_id: one for one in self.workspace.ledger.publications.list(self.run.run_id)}

    @cached_property
    def candidates(self) -> dict[int, CandidateRecord]:
        return {one.n: one for one in self.workspace.ledger.candidates.list(self.run.run_id)}

    @cached_property
    def verdicts(self) -> dict[int, VerdictRecord]:
        return {one.audit_seq: one for one in self.workspace.ledger.candidates.verdicts(self.run.run_id)}

    @cached_property
    def inputs(self) -> tuple[DatasetUse, ...]:
        return tuple(build_input(self.workspace.project, pin) for pin in self.manifest.inputs)

    def tell(self, moment: Moment) -> Iterator[LineageEvent]:
        """The events of a moment. Of a chunk and a verdict, the start comes together with the end."""
        match moment.subject:
            case Subject.CORRECTION:
                yield self._tell_correction(moment)
            case Subject.CHUNK:
                yield from self._tell_chunk(moment)
            case Subject.GATE:
                yield from self._tell_gate(moment)
            case Subject.ROLLBACK:
                yield self._tell_rollback(moment)

    def _tell_correction(self, moment: Moment) -> LineageEvent:
        outputs: tuple[DatasetUse, ...] = ()
        if moment.kind in _OUTPUTS:
            outputs = self._list_published(moment)
        elif moment.kind is EventKind.START and self.manifest.changes_table:
            outputs = (build_output(self.workspace.project, self.manifest, find_landing_pin(self.manifest).table),)
        return LineageEvent(
            moment.kind,
            Subject.CORRECTION,
            moment.at,
            self._correction_key(moment),
            inputs=self.inputs,
            outputs=outputs,
            error=moment.state if moment.kind is EventKind.FAIL else "",
            about=self._describe() | ({"state": moment.state} if moment.state else {}),
        )

    def _tell_chunk(self, moment: Moment) -> Iterator[LineageEvent]:
        body = moment.body or {}
        attempt = self.attempts[str(body["chunk"]), int(body["fence"])]
        staging = self.manifest.target.staging.table
        output = build_output(self.workspace.project, self.manifest, staging, attempt.partitions)
        about = self._describe() | {"chunk": attempt.chunk_id, "attempt": attempt.attempt_id}
        start = LineageEvent(
            EventKind.START,
            Subject.CHUNK,
            attempt.started_at,
            self._key(attempt.started_at, attempt.attempt_id, Subject.CHUNK),
            parent=self._correction_key(moment),
            inputs=tuple(replace(one, partitions=()) for one in self.inputs),
            outputs=(output,),
            about=about,
        )
        yield start
        if moment.kind is EventKind.FAIL:
            yield replace(start, kind=moment.kind, at=moment.at, error=str(body.get("error_code", "")))
            return
        written = replace(
            output, version=attempt.snapshot_id, rows=attempt.rows, bytes=attempt.bytes, files=attempt.files
        )
        yield replace(start, kind=moment.kind, at=moment.at, outputs=(written,))

    def _tell_gate(self, moment: Moment) -> Iterator[LineageEvent]:
        verdict = self.verdicts[moment.seq]
        candidate = self.candidates[verdict.candidate_n]
        judged = self._build_judged(candidate, verdict)
        start = LineageEvent(
            EventKind.START,
            Subject.GATE,
            candidate.at,
            self._key(candidate.at, f"{self.run.run_id}/verdict/{moment.seq}", Subject.GATE),
            parent=self._correction_key(moment),
            inputs=(replace(judged, assertions=(), rows=None),),
            about=self._describe() | {"candidate": str(candidate.n)},
        )
        yield start
        error = "rejected" if moment.kind is EventKind.FAIL else ""
        yield replace(start, kind=moment.kind, at=moment.at, inputs=(judged,), error=error)

    def _tell_rollback(self, moment: Moment) -> LineageEvent:
        publication = self.publications[str((moment.body or {})["publication"])]
        output = build_output(self.workspace.project, self.manifest, self._landing, publication.partitions)
        if moment.kind is EventKind.COMPLETE:
            output = replace(output, version=publication.result_snapshot_id, overwrites=self._overwrites)
        return LineageEvent(
            moment.kind,
            Subject.ROLLBACK,
            moment.at,
            self._key(publication.intended_at, publication.pub_id, Subject.ROLLBACK),
            parent=self._correction_key(moment),
            outputs=(output,),
            about=self._describe() | {"publication": publication.pub_id},
        )

    def _list_published(self, moment: Moment) -> tuple[DatasetUse, ...]:
        """What this publication wrote; at the end, what all publications of the run wrote."""
        named = self.publications.get(str((moment.body or {}).get("publication", "")))
        if moment.kind is EventKind.RUNNING:
            landed = [named] if named else []
        else:
            landed = [
                one
                for one in self.publications.values()
                if one.kind == "publish"
                and one.state is PublicationState.COMMITTED
                and str(one.settled_at) <= moment.at
            ]
        if not landed:
            return ()
        names = tuple(dict.fromkeys(name for one in landed for name in one.partitions))
        output = build_output(self.workspace.project, self.manifest, self._landing, names)
        return (
            replace(
                output,
                version=landed[-1].result_snapshot_id,
                overwrites=self._overwrites,
                rows=self._count_rows(landed),
            ),
        )

    def _count_rows(self, landed: Sequence[PublicationRecord]) -> int | None:
        counts: dict[str, int] = {}
        for one in landed:
            candidate = self.candidates.get(one.release.get("candidate", 0))
            known = candidate.detail.get("rows", {}) if candidate else {}
            counts |= {name: int(known[name]) for name in one.partitions if name in known}
        return sum(counts.values()) if counts else None

    def _build_judged(self, candidate: CandidateRecord, verdict: VerdictRecord) -> DatasetUse:
        project, rows = self.workspace.project, candidate.detail.get("rows")
        namespace, name = name_table(project, self.manifest.target.staging.table)
        return DatasetUse(
            namespace,
            name,
            version=candidate.snapshot_id,
            column=self.manifest.target.column,
            partitions=tuple(sorted(rows)) if rows else self.manifest.partitions,
            rows=sum(int(one) for one in rows.values()) if rows else None,
            assertions=_list_assertions(verdict),
        )

    @property
    def _landing(self) -> str:
        return find_landing_pin(self.manifest).table

    @property
    def _overwrites(self) -> bool:
        return find_side_table(self.manifest) is None

    def _describe(self) -> dict[str, str]:
        told = describe_run(self.run.run_id, self.manifest)
        more = {"kind": self.manifest.kind, "product": self.run.product, "manifest": self.run.manifest_digest}
        return {name: str(value) for name, value in (told | more).items()}

    def _correction_key(self, moment: Moment) -> RunKey:
        return self._key(self.run.planned_at, f"{self.run.run_id}/{moment.attempt}", Subject.CORRECTION)

    def _key(self, at: str, text: str, subject: Subject) -> RunKey:
        job = self.run.product if subject is Subject.CORRECTION else f"{self.run.product}.{subject.value}"
        return RunKey(at, f"{self.manifest.ledger_id}/{text}", job)


def _list_assertions(verdict: VerdictRecord) -> tuple[Assertion, ...]:
    """One for each rule, over all partitions; the values stay in the ledger."""
    levels: dict[str, set[str]] = {}
    for check in verdict.checks:
        levels.setdefault(str(check["name"]), set()).add(str(check["level"]))
    return tuple(
        Assertion(name, held=found == {"ok"}, severity="error" if "warn" not in found or "block" in found else "warn")
        for name, found in levels.items()
    )
