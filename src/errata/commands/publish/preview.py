"""Preview (`errata publish --dark`): make the candidate readable by name, without changing what readers of main see.

A preview is a tag on the candidate's snapshot, kept for the rollback window, a second tag on the previous content, and
optionally a view that compares both. The intent is audited before the table is touched. A preview follows the candidate
when it is assembled again, is withdrawn when a new verdict contradicts its name, and is removed by the run's cleanup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from errata.approval.permissions import refuse_requester, require_role
from errata.approval.release import PUBLISHABLE_STATES, JudgedCandidate, audit_refusal, load_judged_candidate
from errata.commands.situation import hint_next_step
from errata.errors import EngineError, ErrataError, RunExpired, StateRefused, UsageError
from errata.failpoints import failpoint
from errata.gate.diff.candidate_diff import list_masked_columns
from errata.gate.measure.names import content_columns
from errata.ledger import CandidateRecord, RunRecord
from errata.model.audit import Actor
from errata.model.diff import MASK
from errata.model.duration import to_days
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.model.refs import DAY_MS, PREFIX, before_tag, compare_view, preview_tag
from errata.model.run import RunState, find_judged_state
from errata.publishing.erasure import require_erasure_check
from errata.publishing.preview_state import Preview, find_preview_owner, find_previews
from errata.publishing.selection import read_refs
from errata.publishing.sql.comparison import ComparisonSides, build_comparison_sql, build_read_statements
from errata.publishing.waves import focus_on_wave
from errata.text.exceptions import first_line
from errata.views import DarkView
from errata.workspace import RunContext, Workspace

REJECTED_SUFFIX = "_rejected"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


@hint_next_step
def publish_preview(
    workspace: Workspace, actor: Actor, run_id: str, name: str | None, *, compare: bool, rejected: bool
) -> DarkView:
    """Make the candidate readable under a name; ``compare`` also creates the view of old and new rows."""
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.PUBLISHER,), "publish --dark", run.run_id)
    refuse_requester(workspace, actor, run.planned_by, "publish", run.run_id)
    context = focus_on_wave(workspace.open_run(run.run_id, actor))
    run, manifest = context.run, context.manifest
    found = _require_previewable(workspace, actor, run, rejected=rejected)
    require_erasure_check(workspace, actor, run, found.candidate)
    chosen = _choose_name(run, name, passed=found.verdict.passed)
    told = _describe_preview(context, found.candidate, chosen, compare=compare)
    _require_free_name(context, told)
    known = find_previews(workspace, run).get(told["name"])
    already = known is not None and known.is_made and _is_up_to_date(workspace, manifest, known.told, told)
    warnings: tuple[str, ...] = ()
    if known is not None and already:
        told = dict(known.told)
    else:
        warnings = _create_preview(context, found.candidate, told)
    return _preview_view(context, found, told, already=already, warnings=warnings)


def _require_previewable(workspace: Workspace, actor: Actor, run: RunRecord, *, rejected: bool) -> JudgedCandidate:
    """The judged candidate; one that did not pass only if ``rejected`` is set."""
    found = load_judged_candidate(workspace, run)
    if found is None or run.state not in (*PUBLISHABLE_STATES, RunState.REJECTED, RunState.NEEDS_ACCEPTANCE):
        error = StateRefused(
            f"publish --dark of {run.run_id} was refused; expected a run whose candidate was judged and is not "
            f"published whole, found {run.state}",
            state="main is unchanged",
            run_id=run.run_id,
        )
        raise audit_refusal(workspace, actor, run, "publish --dark", error)
    if not found.verdict.passed and not rejected:
        error = StateRefused(
            f"publish --dark of {run.run_id} was refused; expected a candidate that passed its gate, found "
            f"{find_judged_state(found.verdict.checks, passed=False).replace('_', ' ')}",
            state="main is unchanged",
            hint=f"to look at it anyway, under a name that ends in {REJECTED_SUFFIX}: "
            f"errata publish {run.run_id} --dark --rejected",
        )
        raise audit_refusal(workspace, actor, run, "publish --dark", error)
    return found


def _choose_name(run: RunRecord, name: str | None, *, passed: bool) -> str:
    """The preview name; that of a candidate that did not pass ends in ``REJECTED_SUFFIX``."""
    promises_less = name is not None and passed and name.endswith(REJECTED_SUFFIX)
    if name is not None and (not _NAME.fullmatch(name) or name == "main" or name.startswith(PREFIX) or promises_less):
        raise UsageError(
            f"the name {name!r} was refused; expected a letter, then letters, digits, _ or -, 63 at most, neither main "
            f"nor anything that begins with {PREFIX}, nor {REJECTED_SUFFIX} at the end of a name for what passed"
        )
    base = name or preview_tag(run.run_id)
    return base if passed or base.endswith(REJECTED_SUFFIX) else f"{base}{REJECTED_SUFFIX}"


def _describe_preview(context: RunContext, candidate: CandidateRecord, name: str, *, compare: bool) -> dict[str, Any]:
    """Body of the audit entry of a preview."""
    until = context.workspace.now() + timedelta(days=to_days(context.manifest.rollback_window))
    # after a rebase the candidate replaces the newest base, in which the other partitions are the same
    base = next((one["base_snapshot_id"] for one in reversed(context.ledger.rebases.facts(context.run_id))), None)
    base = base or context.manifest.target.base_snapshot_id
    keyed = compare and bool(context.manifest.target.key)
    return {
        "table": context.manifest.target.staging.table,
        "name": name,
        "snapshot_id": candidate.snapshot_id,
        "candidate": candidate.n,
        "before": before_tag(name) if base else None,
        "before_snapshot_id": base,
        "view": compare_view(context.run.table, name) if keyed else None,
        "masked": list(list_masked_columns(context.workspace, context.manifest)),
        "rejected": name.endswith(REJECTED_SUFFIX),
        "keep_until": until.date().isoformat(),
    }


def _require_free_name(context: RunContext, told: Mapping[str, Any]) -> None:
    """Refuse a name that is taken by a branch or tag which is not a preview."""
    if told["name"].startswith(PREFIX):
        return  # reserved for this run, whether or not the ledger knows it
    refs = read_refs(context.workspace, told["table"]) or {}
    held, name = refs.get(told["name"]), told["name"]
    if held is None:
        # the name of the second tag, on the previous content, may be taken as well
        name, held = told["before"], context.engines.pins.refs(context.manifest.target.table).get(told["before"] or "")
        if held is None or told["name"] in find_previews(context.workspace, context.run):
            return
    elif find_preview_owner(context.workspace, context.run, told["name"], held) is not None:
        return
    error = StateRefused(
        f"publish --dark of {context.run_id} was refused; expected a free name, found {name} on snapshot {held}, "
        "which is not a dark publication",
        state="nothing was changed",
        hint=f"errata publish {context.run_id} --dark --name ANOTHER",
    )
    raise audit_refusal(context.workspace, context.actor, context.run, "publish --dark", error)


def _create_preview(context: RunContext, candidate: CandidateRecord, told: dict[str, Any]) -> tuple[str, ...]:
    """Record the intent, set the tags, create the view, record the result; returns warnings. Safe to repeat."""
    held = (read_refs(context.workspace, told["table"]) or {}).get(told["name"])
    owner = find_preview_owner(context.workspace, context.run, told["name"], held) if held else None
    context.ledger.audit.note(context.run_id, context.actor, "dark.intended", told)
    failpoint("dark.after_intent")
    warnings = []
    if owner is not None and owner.run_id != context.run_id:
        taken = {"name": told["name"], "to": context.run_id, "view": told["view"]}
        context.ledger.audit.note(owner.run_id, context.actor, "dark.withdrawn", taken)
        warnings.append(f"{told['name']} stood for the candidate of {owner.run_id} until now")
    _move_tag(context, told["table"], told["snapshot_id"], told["name"])
    if told["before"]:
        _move_tag(context, context.manifest.target.table, told["before_snapshot_id"], told["before"])
    failpoint("dark.after_tag")
    if told["view"]:
        try:
            context.engines.writer.show(
                told["view"], _build_comparison(context.workspace, context.manifest, candidate, told) or ""
            )
        except Exception as error:  # noqa: BLE001  the name is there, and the query serves those who have no view
            warnings.append(f"{told['view']} was not made ({first_line(error)}); readers can use the query below")
            told["view"] = None
        failpoint("dark.after_view")
    context.ledger.audit.note(context.run_id, context.actor, "dark.published", told)
    return tuple(warnings)


def _move_tag(context: RunContext, table: str, snapshot_id: str, name: str) -> None:
    keep, now = to_days(context.manifest.rollback_window) * DAY_MS, int(context.workspace.now().timestamp() * 1000)
    pin = context.engines.pins.move(table, snapshot_id, name, keep_ms=keep, now_ms=now)
    if pin.outcome != "not_pinned":
        return
    if not context.engines.pins.snapshot_exists(table, snapshot_id):
        raise RunExpired(
            f"publish --dark of {context.run_id} was refused; snapshot {snapshot_id} of {table} is gone",
            state="main is unchanged",
            hint=f"errata validate {context.run_id} assembles the candidate again",
        )
    raise EngineError(
        f"publish --dark of {context.run_id} did not work: {pin.warning}",
        state="main is unchanged",
        hint=f"errata diff {context.run_id} shows the candidate where a catalog takes no tags",
    )


def _build_comparison(
    workspace: Workspace, manifest: Manifest, candidate: CandidateRecord, told: Mapping[str, Any]
) -> str | None:
    """Query that compares old and new rows by key; None without a key."""
    if not manifest.target.key:
        return None
    return build_comparison_sql(
        manifest.target,
        ComparisonSides(told["before"], told["name"]),
        content_columns(manifest),
        tuple(name for name in manifest.partitions if name in candidate.detail.get("rows", {})) or manifest.partitions,
        masked=list_masked_columns(workspace, manifest),
        mask=MASK,
    )


def _is_up_to_date(workspace: Workspace, manifest: Manifest, known: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether tags and view are already as requested; a view that is not requested this time is kept."""
    refs = read_refs(workspace, told["table"]) or {}
    before = workspace.engines.pins.refs(manifest.target.table) if told["before"] else {}
    return (
        refs.get(told["name"]) == told["snapshot_id"]
        and (not told["before"] or before.get(told["before"]) == told["before_snapshot_id"])
        and (told["view"] is None or (told["view"], told["masked"]) == (known["view"], known["masked"]))
    )


def _preview_view(
    context: RunContext, found: JudgedCandidate, told: Mapping[str, Any], *,
    already: bool, warnings: tuple[str, ...]) -> DarkView:  # fmt: skip
    return DarkView(
        run_id=context.run_id,
        state=context.widen().run.state.value,
        already=already,
        table=told["table"],
        name=told["name"],
        snapshot_id=told["snapshot_id"],
        keep_until=told["keep_until"],
        rejected=told["rejected"],
        reads=build_read_statements(told["table"], told["name"], told["snapshot_id"]),
        comparison=_build_comparison(context.workspace, context.manifest, found.candidate, told),
        view=told["view"],
        before=told["before"],
        warnings=warnings,
        single_user=context.actor.single_user,
    )


def update_previews(context: RunContext, candidate: CandidateRecord, *, passed: bool) -> None:
    """After a verdict, move each preview to the new candidate, or withdraw it if its name contradicts the verdict.

    Previews of other waves stay as they are.
    """
    waves = {made.n: set(made.detail.get("rows", ())) for made in context.ledger.candidates.list(context.run_id)}
    for name, one in find_previews(context.workspace, context.run).items():
        if waves.get(one.told["candidate"], set()).isdisjoint(context.run.partitions):
            continue
        try:
            if bool(one.told["rejected"]) is passed:
                _withdraw_preview(context, one)
                context.workspace.narrate(
                    f"{name} is no longer readable: its candidate {'passed' if passed else 'did not pass'}"
                )
            elif one.told["snapshot_id"] != candidate.snapshot_id:
                told = _describe_preview(context, candidate, name, compare=one.told["view"] is not None)
                for warning in _create_preview(context, candidate, told):
                    context.workspace.narrate(f"WARNING: {warning}")
                context.workspace.narrate(f"{name} reads the new candidate from now on")
        except ErrataError as error:  # the verdict is recorded anyway; the next validate tries again
            context.workspace.narrate(f"WARNING: {name} still reads candidate {one.told['candidate']}: {error.message}")


def _withdraw_preview(context: RunContext, one: Preview) -> None:
    told = one.told
    if told["view"]:
        context.engines.writer.drop_view(told["view"])
        context.ledger.audit.note(context.run_id, context.actor, "dark.view_dropped", {"view": told["view"]})
    if (read_refs(context.workspace, told["table"]) or {}).get(told["name"]) in one.snapshots:
        context.engines.pins.remove(told["table"], told["name"])
    if told["before"]:
        context.engines.pins.remove(context.manifest.target.table, told["before"])
    context.ledger.audit.note(context.run_id, context.actor, "dark.withdrawn", {"name": told["name"]})
