"""`errata validate`: judge a run's candidate, again whenever thresholds or accepted warnings change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from errata.approval.permissions import refuse_requester, require_person, require_role
from errata.approval.release import find_release_digest
from errata.canonical import digest_of, to_plain
from errata.commands.compute.sealed_engine import require_sealed_engine
from errata.commands.publish.preview import update_previews
from errata.commands.situation import hint_next_step
from errata.errors import Differs, NeedsAcceptance, StateRefused, ValidationRejected
from errata.failpoints import failpoint
from errata.gate.candidate import assemble_candidate, describe_candidate, measure_candidate, require_adopted_chunks
from errata.gate.erased_since import recompute_without_erased
from errata.gate.threshold_changes import change_thresholds, list_rules, read_threshold_changes, with_current_thresholds
from errata.gate.verdict.acceptance import find_open_warnings, format_accept_command
from errata.gate.verdict.findings import BLOCK, OK, CandidateSummary
from errata.gate.verdict.judge import Verdict, judge_candidate
from errata.gate.warnings import accept_warnings, find_valid_acceptances
from errata.gate.wave_rules import select_run_rules
from errata.ledger import CandidateRecord, CandidateState, ChunkRecord, RunRecord, VerdictRecord
from errata.live_writers.freeze import freeze_partitions
from errata.live_writers.rebase import rebase_if_written
from errata.model.audit import Actor
from errata.model.kind import ATTEST, RECONCILE
from errata.model.manifest import Manifest, with_list_at
from errata.model.partition import format_partition_list, sort_oldest_first
from errata.model.product import Role
from errata.model.rebase import apply_recounts
from errata.model.run import RunState, find_judged_state
from errata.model.waves import BLOCKED, OUT, WaveState, find_wave, narrow_to_partitions
from errata.ports.measure import Measurement
from errata.publishing.erasure import check_candidate_erasure
from errata.publishing.expected_files import find_written_partitions
from errata.publishing.late_inputs import notice_late_inputs, read_late_inputs
from errata.publishing.live_writes import LIVE_WRITE_SEEN, notice_live_writes, read_live_writes
from errata.publishing.messages import plan_again_command
from errata.publishing.recovery import recover_open_intents
from errata.publishing.selection import read_refs
from errata.publishing.sweep import sweep_refs
from errata.text.numbers import plural
from errata.views import ValidateView
from errata.workspace import RunContext, Workspace

S = RunState
_JUDGEABLE_STATES = frozenset({S.STAGED, S.REJECTED, S.NEEDS_ACCEPTANCE, S.VALIDATED})
_UNDECIDED = frozenset({WaveState.STAGED}) | BLOCKED
_VISIBLE = frozenset({WaveState.PUBLISHED, WaveState.PART_PUBLISHED})


@hint_next_step
def validate_run(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    accept: Mapping[str, str],
    thresholds: str | None = None,
    *,
    wave: int | None = None,
) -> ValidateView:
    """Verdict on the run's candidate; raises ``ValidationRejected`` or ``NeedsAcceptance`` if it does not pass.

    ``thresholds`` is the reason for using the thresholds currently in the product file. Of several waves, every one
    that is computed and not decided is judged, in order, up to the first that does not pass; or only ``wave``.
    """
    run = workspace.ledger.runs.get(run_id)
    decides = bool(accept) or thresholds is not None
    deed = "validate --accept" if accept else "validate --thresholds" if decides else "validate"
    require_role(workspace, actor, (Role.APPROVER,) if decides else (Role.OPERATOR, Role.APPROVER), deed, run.run_id)
    if decides:
        require_person(workspace, actor, (Role.APPROVER,), deed, run.run_id)
        refuse_requester(workspace, actor, run.planned_by, "accept" if accept else "other thresholds", run.run_id)
    recover_open_intents(workspace, actor, run.table)
    context = workspace.open_run(run.run_id, actor)
    if decides and not context.manifest.changes_table:
        raise _refuse_decision(context, deed)
    for n in (wave,) if wave else _find_waves_to_judge(context, decides=decides):
        find_wave(context.manifest, n)
        view = _validate_wave(context.narrow(n), accept, thresholds)
    return view


def _find_waves_to_judge(context: RunContext, *, decides: bool) -> tuple[int, ...]:
    """Numbers of the waves that wait for a verdict; of one that is decided already if none does."""
    waves = context.ledger.waves.list(context.run_id)
    computed = takewhile(lambda one: one.state is not WaveState.COMPUTING, waves)
    waiting = tuple(one.n for one in computed if one.state in _UNDECIDED)
    if waiting:
        # a decision of a person is about one wave
        return waiting[:1] if decides else waiting
    judged = [one.n for one in waves if one.judged is not None]
    open_waves = [one.n for one in waves if one.n in judged and one.state not in OUT]
    return ((open_waves or judged or [1])[0],)


def _validate_wave(context: RunContext, accept: Mapping[str, str], thresholds: str | None) -> ValidateView:
    workspace, actor, decides = context.workspace, context.actor, bool(accept) or thresholds is not None
    run = context.run
    candidate = _find_measured_candidate(context) if run.state in (*_JUDGEABLE_STATES, S.PART_PUBLISHED) else None
    # assemble an expired candidate of a partly published run again, because its rest is still to be published
    is_lost = run.state is S.PART_PUBLISHED and candidate is None
    if run.state not in _JUDGEABLE_STATES and (not is_lost or decides):
        if run.state is S.PART_PUBLISHED and candidate is not None:
            check_candidate_erasure(context, candidate)
        return _report_recorded_verdict(workspace, actor, run, thresholds)
    chunks = require_adopted_chunks(context)
    if candidate is None:
        require_sealed_engine(context)
        workspace.engines.start_early()
    try:
        with freeze_partitions(context):
            return _judge_candidate(context, chunks, candidate, accept, thresholds)
    except StateRefused:
        now = context.reload().run
        if decides or now.state in _JUDGEABLE_STATES or now.state is run.state:
            raise
        # another process judged it meanwhile and continued; its verdict is the answer
        return _report_recorded_verdict(workspace, actor, now, None)


def _judge_candidate(
    context: RunContext,
    chunks: Sequence[ChunkRecord],
    candidate: CandidateRecord | None,
    accept: Mapping[str, str],
    thresholds: str | None,
) -> ValidateView:
    # before anything is judged: chunks that used rows of subjects erased since are computed again
    listed = recompute_without_erased(context)
    if candidate is None:
        rebase_if_written(context)
        candidate = assemble_candidate(context, chunks)
        if context.wave is None:  # waves are many, and their last publication does it
            sweep_refs(context.workspace, context.actor, context.run.table)
    # before the measurement, so that rows of erased subjects never reach a verdict
    if context.manifest.kind != RECONCILE:  # main itself is what it is, and nothing of it is published again
        check_candidate_erasure(context, candidate, listed)
    measured = replace(context, manifest=with_list_at(context.manifest, listed))
    measurements = measure_candidate(measured, candidate)
    facts = describe_candidate(context.workspace, context.manifest, candidate)
    if thresholds is not None:
        change_thresholds(context.widen(), thresholds)
    judge = _build_judge(context, measurements, facts)
    if accept:
        accept_warnings(context.workspace, context.actor, context.run, accept, judge({}))
    return _record_verdict(context, candidate, judge, len(measurements))


_Judge = Callable[[Mapping[str, str]], Verdict]


def _build_judge(context: RunContext, measurements: tuple[Measurement, ...], facts: CandidateSummary) -> _Judge:
    """Judges these measurements, by accepted warnings, with the thresholds that count now."""
    whole = context.widen().manifest
    rules = apply_recounts(
        with_current_thresholds(context.workspace, context.run, whole), context.ledger.rebases.list(context.run_id)
    )
    of_run = select_run_rules(context, rules)
    if of_run is None:
        return lambda accepted: judge_candidate(rules, measurements, facts, accepted)
    of_wave = narrow_to_partitions(rules, context.run.partitions)
    return lambda accepted: judge_candidate(
        of_wave, measurements, facts, accepted, whole=of_run.manifest, earlier=of_run.earlier
    )


def _find_measured_candidate(context: RunContext) -> CandidateRecord | None:
    """The existing, measured candidate, if any: judging it again needs neither a scan nor a JVM."""
    candidate = context.ledger.candidates.latest(context.run_id, context.run.partitions)
    if candidate is None or candidate.state is not CandidateState.MADE:
        return None
    if set(candidate.detail["rows"]) != set(context.manifest.partitions):
        return None
    refs = read_refs(context.workspace, context.manifest.target.staging.table) or {}
    if refs.get(candidate.branch) != candidate.snapshot_id:
        return None
    return candidate if context.ledger.candidates.measurements(context.run_id, candidate.n) else None


def _report_recorded_verdict(
    workspace: Workspace, actor: Actor, run: RunRecord, thresholds: str | None
) -> ValidateView:
    """Recorded verdict of a run that is past its gate; a run that has not reached the gate is refused."""
    verdict, candidate = (
        workspace.ledger.candidates.latest_verdict(run.run_id, run.partitions),
        workspace.ledger.candidates.latest(run.run_id, run.partitions),
    )
    if verdict is None or candidate is None or thresholds is not None:
        what = "other thresholds for" if thresholds is not None else "validate of"
        error = StateRefused(
            f"{what} {run.run_id} was refused; expected a run that is staged and not yet published, found {run.state}",
            state="nothing was changed",
            run_id=run.run_id,
        )
        workspace.ledger.audit.record_refusal(run.run_id, actor, "validate", error.message)
        raise error
    view = recorded_verdict_view(workspace, run, verdict, candidate)
    if run.state is S.DIFFERS:
        raise _differs_error(workspace.ledger.runs.manifest(run.run_id, actor), run, view)
    return view


def recorded_verdict_view(
    workspace: Workspace, run: RunRecord, verdict: VerdictRecord, candidate: CandidateRecord
) -> ValidateView:
    """View of a verdict from the ledger."""
    return ValidateView(
        run_id=run.run_id,
        state=run.state.value,
        already=True,
        passed=verdict.passed,
        snapshot_id=candidate.snapshot_id or "",
        candidate=candidate.branch,
        checks=verdict.checks,
        measured=len(workspace.ledger.candidates.measurements(run.run_id, candidate.n)),
        thresholds=_list_threshold_changes(workspace, run),
        release_digest=find_release_digest(workspace, run),
        single_user=workspace.project.single_user,
        late_inputs=read_late_inputs(workspace, run),
        kind=workspace.ledger.runs.manifest(run.run_id).kind,
    )


def _list_threshold_changes(workspace: Workspace, run: RunRecord) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {key: change[key] for key in ("person", "why", "changes")} for change in read_threshold_changes(workspace, run)
    )


def _record_live_writes(context: RunContext) -> tuple[str, ...]:
    """Record live writes to the partitions; returns the partitions whose publication would be refused now."""
    if written := find_written_partitions(context.workspace, context.run, context.manifest):
        notice_live_writes(context, "validate")
        explained = {name for one in read_live_writes(context.workspace, context.run) for name in one.partitions}
        if rest := [name for name in written if name not in explained]:
            context.ledger.audit.note(
                context.run_id,
                context.actor,
                LIVE_WRITE_SEEN,
                {"seen_by": "validate", "partitions": rest, "commits": []},
            )
    return written


def _record_verdict(context: RunContext, candidate: CandidateRecord, judge: _Judge, measured: int) -> ValidateView:
    run, manifest = context.run, context.manifest
    verdict = judge({})
    if accepted := find_valid_acceptances(context.workspace, run, verdict):
        verdict = judge(accepted)
    checks: tuple[Mapping[str, Any], ...] = tuple(to_plain(check) for check in verdict.checks)
    before = context.ledger.candidates.latest_verdict(run.run_id, run.partitions)
    rules = with_current_thresholds(context.workspace, run, context.widen().manifest)
    thresholds = digest_of([*list_rules(rules), [to_plain(a) for a in accepted]])
    already = (
        before is not None
        and (before.candidate_n, before.thresholds_digest) == (candidate.n, thresholds)
        and [dict(check) for check in before.checks] == [dict(check) for check in checks]
        # a run that earlier code rejected for warnings alone is judged again
        and run.state
        in (S.PART_PUBLISHED, find_judged_state(checks, passed=verdict.passed, changes_table=manifest.changes_table))
    )
    if not already:
        context.ledger.candidates.record_verdict(
            run.run_id, candidate.n, verdict.passed, checks, thresholds, context.actor,
            changes_table=manifest.changes_table,
        )  # fmt: skip
        failpoint("validate.after_verdict")
    context = context.reload()
    run = context.run
    update_previews(context, candidate, passed=verdict.passed)
    if not before:
        notice_late_inputs(context, context.manifest.partitions, "validate")
    if not manifest.changes_table:
        sweep_refs(context.workspace, context.actor, run.table)  # the run has ended; the diff of it was kept
    view = ValidateView(
        run_id=run.run_id,
        state=context.widen().run.state.value,
        wave=context.wave.n if context.wave else 1,
        already=already,
        passed=verdict.passed,
        snapshot_id=candidate.snapshot_id or "",
        candidate=candidate.branch,
        checks=checks,
        measured=measured,
        conflicts=_record_live_writes(context) if manifest.changes_table and not before else (),
        thresholds=_list_threshold_changes(context.workspace, run),
        release_digest=find_release_digest(context.workspace, run),
        single_user=context.workspace.project.single_user,
        late_inputs=read_late_inputs(context.workspace, run),
        kind=manifest.kind,
    )
    if verdict.passed:
        return view
    if not manifest.changes_table:
        raise _differs_error(manifest, run, view)
    waves = context.ledger.waves.list(run.run_id)
    partitions = sort_oldest_first(
        manifest.target.grain, [name for one in waves if one.state not in OUT for name in one.partitions]
    )
    again = plan_again_command(run.product, run.run_id, manifest.target.grain, partitions)
    raise _not_passed_error(
        verdict, view, again, [one.n for one in waves if one.state in _VISIBLE and one.n != view.wave]
    )


def _refuse_decision(context: RunContext, deed: str) -> StateRefused:
    error = StateRefused(
        f"{deed} of {context.run_id} was refused; a run of kind {context.manifest.kind} publishes nothing, so there is "
        "nothing to decide about",
        state="nothing was changed",
        hint=f"errata validate {context.run_id}",
        run_id=context.run_id,
    )
    context.ledger.audit.record_refusal(context.run_id, context.actor, "validate", error.message)
    return error


def _differs_error(manifest: Manifest, run: RunRecord, view: ValidateView) -> Differs:
    """What differs in main, where, and the plan that would correct it."""
    problems = [check for check in view.checks if check["level"] != OK]
    where = sort_oldest_first(
        manifest.target.grain, {str(check["partition"]) for check in problems if check["partition"]}
    )
    scope = format_partition_list(manifest.target.grain, where or manifest.partitions)
    names = ", ".join(dict.fromkeys(str(check["name"]) for check in problems))
    within = f" in {plural(len(where), 'partition')}" if where else ""
    first = problems[0]
    look = f"errata diff {run.run_id}" if manifest.kind == ATTEST else f"errata report {run.run_id} -o report.html"
    return Differs(
        f"{run.table} differs{within}, by {names}; first: {first['partition'] or 'all'}: {first['message']}",
        state="nothing was changed",
        hint=f'{look}\nto correct it: errata plan {run.product} --partitions {scope} --reason "…"',
        validation=view,
    )


def bring_up_to_date(workspace: Workspace, rejected: ValidationRejected) -> None:
    """Say what is published now, and plan what is not, because a wave may have gone out since the verdict."""
    view: ValidateView = rejected.fields["validation"]
    waves, run = workspace.ledger.waves.list(view.run_id), workspace.ledger.runs.get(view.run_id)
    rejected.state = describe_kept(view, [one.n for one in waves if one.state in _VISIBLE and one.n != view.wave])
    if not isinstance(rejected, NeedsAcceptance):
        grain = workspace.ledger.runs.manifest(view.run_id).target.grain
        left = sort_oldest_first(grain, [name for one in waves if one.state not in OUT for name in one.partitions])
        again = plan_again_command(run.product, run.run_id, grain, left)
        rejected.hint = f"correct the transform or the rule, then: {again}"


def describe_kept(view: ValidateView, out: Sequence[int]) -> str:
    """What readers see after a candidate was rejected, and where it is; ``out`` are the waves that are out."""
    main = "main is unchanged"
    if out:
        waves = f"wave {out[0]} stays" if len(out) == 1 else f"waves {', '.join(map(str, out))} stay"
        main = f"wave {view.wave} is not published; {waves} published"
    return f"{main}; the candidate is kept for a look: errata diff {view.run_id}"


def _not_passed_error(verdict: Verdict, view: ValidateView, again: str, out: Sequence[int]) -> ValidationRejected:
    """What blocks or warns, and the way on: accept the warnings, or plan again; ``out`` are the waves that are out."""
    counted = Counter((problem.name, problem.level) for problem in verdict.problems)
    told = [f"{name} {'blocks' if level == 'block' else 'warns'} in {n}" for (name, level), n in counted.items()]
    first = verdict.problems[0]
    found = f"{', '.join(told)}; first: {first.partition or 'the candidate'}: {first.message}"
    look = describe_kept(view, out)
    if warned := find_open_warnings(view.checks):
        return NeedsAcceptance(
            f"{plural(len(warned), 'warning')} to accept: {found}",
            state=look,
            hint=f"if it is right, an approver says so: {format_accept_command(view.run_id, warned)}",
            validation=view,
        )
    blocked = [problem for problem in verdict.problems if problem.level == BLOCK]
    where = {problem.partition for problem in blocked if problem.partition}
    failed = f"{plural(len({problem.name for problem in blocked}), 'check')} failed"
    within = f" in {plural(len(where), 'partition')}" if where else ""
    return ValidationRejected(
        f"{failed}{within}: {found}",
        state=look,
        hint=f"correct the transform or the rule, then: {again}",
        validation=view,
    )
