"""Read the situation of a run, which decides its next command; reads only, and never starts a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from errata.approval.quorum import current_quorum_view
from errata.approval.suggestion import complete_commands, list_who_run_and_publish
from errata.commands.consumers.outbox import list_decisive, suggest_payment
from errata.commands.next_step import RunSituation, next_steps
from errata.errors import StateRefused
from errata.gate.verdict.acceptance import find_open_warnings
from errata.ledger import ChunkCounts, PartitionState, RunRecord
from errata.ledger.records import ChunkRecord
from errata.model.audit import Actor
from errata.model.chunk_outcome import NEEDS_NEW_PLAN
from errata.model.consumer.hold import READERS, WAITS, judge_hold
from errata.model.manifest import Manifest
from errata.model.run import FINAL, WITHOUT_RESULT, ChunkState, RunState
from errata.model.waves import WaveState

if TYPE_CHECKING:
    from errata.views import QuorumView, SetBackView, WaveTurnView
    from errata.views.live_writes import LiveWriteView
    from errata.workspace import RunContext, Workspace

S = RunState
_Command = TypeVar("_Command", bound=Callable[..., Any])
_MAX_RECENT_ENTRIES = 200
_NOT_STARTED = frozenset({S.PLANNED, S.DECLINED})
"""Nothing is computed: gate, waves and table decide nothing yet, and their modules are not loaded."""
_DECIDED_BY_WAVE = frozenset({S.STAGED, S.REJECTED, S.NEEDS_ACCEPTANCE, S.VALIDATED, S.PART_PUBLISHED})
_STREAMED = frozenset({S.RUNNING, S.STAGED, S.VALIDATED, S.PART_PUBLISHED})
_SUPERSEDED_WHEN_PLANNED_AGAIN = frozenset({S.REJECTED, S.NEEDS_ACCEPTANCE, S.FAILED, S.EXPIRED})


class _TableSituation(TypedDict):
    turn: WaveTurnView | None
    live_writes: Sequence[LiveWriteView]
    set_back: Sequence[SetBackView]


def build_situation(
    run: RunRecord,
    manifest: Manifest,
    *,
    counts: ChunkCounts,
    states: Mapping[str, PartitionState],
    quorum: QuorumView | None,
    turn: WaveTurnView | None,
    live_writes: Sequence[LiveWriteView],
    set_back: Sequence[SetBackView],
    last_move: str,
    chunks: Sequence[ChunkRecord] = (),
    open_warnings: tuple[str, ...] = (),
    is_reviewed: bool = False,
    successor: str = "",
    campaign: str = "",
    owes: Sequence[str] = (),
    goes_by_itself: bool = False,
    waits_for_consumers: bool = False,
) -> RunSituation:
    """The situation of a run, from what was read about it."""
    unpublished = [name for name in manifest.partitions if states[name] is PartitionState.UNPUBLISHED]
    # where live wins, publish itself handles partitions that others wrote
    ends_as_conflict = manifest.publish.on_live_write != "live_wins"
    written = {name for write in live_writes for name in write.partitions} if ends_as_conflict else set()
    return RunSituation(
        run_id=run.run_id,
        product=run.product,
        state=run.state,
        grain=manifest.target.grain,
        last_move=last_move,
        needs_new_plan=any(one.state is ChunkState.FAILED and one.error_code in NEEDS_NEW_PLAN for one in chunks),
        # a wave that was judged is computed, whatever is left of the run
        is_computed=run.wave is not None or counts.done == counts.total,
        open_warnings=open_warnings,
        lacks_approvals=quorum is not None and not quorum.met,
        waves_stopped=turn is not None and bool(turn.stopped),
        goes_by_itself=goes_by_itself,
        written=tuple(name for name in unpublished if name in written),
        free=tuple(name for name in unpublished if name not in written),
        waits_for_consumers=waits_for_consumers,
        restore_command=set_back[0].next if set_back else "",
        is_reviewed=is_reviewed,
        successor=successor,
        kind=manifest.kind,
        partitions=manifest.partitions,
        campaign=campaign,
        decide_command=next((step for step in owes if step != f"errata deliver {run.run_id}"), ""),
        pay_command=next(iter(owes), ""),
    )


def find_successor(workspace: Workspace, run: RunRecord) -> str:
    """The last run planned in place of all of this one, for a run that waits for a decision or a new plan."""
    if run.state not in _SUPERSEDED_WHEN_PLANNED_AGAIN:
        return ""
    last = run
    while found := next(
        (one for one in workspace.ledger.runs.list_successors(last.run_id) if _replaces(one, run)), None
    ):
        last = found
    return last.run_id if last is not run else ""


def _replaces(later: RunRecord, run: RunRecord) -> bool:
    return later.state not in WITHOUT_RESULT and set(later.partitions) >= set(run.partitions)


def find_campaign_of(workspace: Workspace, run: RunRecord) -> str:
    """The campaign that a run is a member of; empty if it is none."""
    member = workspace.ledger.members.of_run(run.run_id)
    return member.campaign_id if member else ""


def goes_by_itself(context: RunContext) -> bool:
    """Whether `run --publish` brings the next wave of a started run to readers, as far as is known now."""
    settings = context.manifest.publish.waves
    if settings is None or context.run.state not in _STREAMED:
        return False
    from errata.approval.authorization import explain_unreleased
    from errata.publishing.waves import find_next_wave

    waves = context.ledger.waves.list(context.run_id)
    upcoming = find_next_wave(waves)
    if len(waves) == 1 or upcoming is None:
        return False
    if not (context.workspace.project.single_user or list_who_run_and_publish(context.workspace, context.run)):
        return False
    if upcoming.state is WaveState.VALIDATED:
        return not explain_unreleased(context.narrow(upcoming.n))
    return upcoming.state in (WaveState.COMPUTING, WaveState.STAGED) and settings.release != "each"


def waits_for_consumers(workspace: Workspace, run: RunRecord) -> bool:
    """Whether the next publication of a run waits for a consumer that it holds."""
    if run.state not in (S.VALIDATED, S.PART_PUBLISHED):
        return False
    now_ms, holds = workspace.ledger.now_ms(), workspace.ledger.holds.list(run.run_id)
    return any(one.consumer != READERS and judge_hold(one, now_ms) in WAITS for one in holds)


def find_last_move(workspace: Workspace, run: RunRecord) -> str:
    """The action that paused or failed a run; empty in other states."""
    if run.state not in (S.PAUSED, S.FAILED):
        return ""
    entries = workspace.ledger.audit.entries(run.run_id, limit=_MAX_RECENT_ENTRIES)
    return next((entry.action for entry in reversed(entries) if "move" in entry.body), "")


def find_warnings_to_accept(workspace: Workspace, run: RunRecord) -> tuple[str, ...]:
    """Rules that warned about the candidate, if accepting them is all that is missing; empty in other states."""
    if run.state not in (S.NEEDS_ACCEPTANCE, S.REJECTED):
        return ()
    verdict = workspace.ledger.candidates.latest_verdict(run.run_id, run.partitions)
    return find_open_warnings(verdict.checks) if verdict else ()


def focus_for_step(context: RunContext) -> RunRecord:
    """The run as far as its next wave is, where that decides what a person does next."""
    if context.run.state in (S.PAUSED, S.FAILED) or context.run.state in FINAL | _NOT_STARTED:
        return context.run
    from errata.publishing.waves import focus_on_wave

    focused = focus_on_wave(context).run
    return focused if focused.state in _DECIDED_BY_WAVE else context.run


def suggest_steps(workspace: Workspace, actor: Actor, run_id: str, *, is_reviewed: bool = False) -> tuple[str, ...]:
    """The commands to type next, each with a person who may type it; ``is_reviewed``: for one who has seen the diff."""

    def read() -> tuple[str, ...]:
        run = _read_situation(workspace, actor, run_id, is_reviewed=is_reviewed)
        return tuple(complete_commands(workspace, actor, command) for command in next_steps(run))

    return workspace.ledger.read_together(read)


def _read_situation(workspace: Workspace, actor: Actor, run_id: str, *, is_reviewed: bool) -> RunSituation:
    context = workspace.open_run(run_id, actor)
    run, manifest = context.run, context.manifest
    return build_situation(
        focus_for_step(context),
        manifest,
        counts=workspace.ledger.progress.counts(run.run_id),
        states=workspace.ledger.partitions.states(run.run_id),
        quorum=current_quorum_view(workspace, run, manifest),
        **_read_table_situation(context),
        last_move=find_last_move(workspace, run),
        chunks=workspace.ledger.progress.chunks(run.run_id) if run.state is S.FAILED else (),
        open_warnings=find_warnings_to_accept(workspace, focus_for_step(context)),
        is_reviewed=is_reviewed,
        successor=find_successor(workspace, run),
        campaign=find_campaign_of(workspace, run),
        owes=suggest_payment(list_decisive(workspace.ledger.outbox.list_open(run_id=run.run_id)), run.run_id),
        goes_by_itself=goes_by_itself(context),
        waits_for_consumers=waits_for_consumers(workspace, run),
    )


def _read_table_situation(context: RunContext) -> _TableSituation:
    """What waves, live writers and set-backs say about the next step."""
    if context.run.state in _NOT_STARTED:
        return {"turn": None, "live_writes": (), "set_back": ()}
    from errata.publishing.live_writes import read_live_writes
    from errata.publishing.set_back_detection import find_run_set_backs
    from errata.publishing.waves import turn_view

    workspace, run = context.workspace, context.run
    return {
        "turn": turn_view(workspace, run, context.manifest, workspace.ledger.waves.list(run.run_id)),
        "live_writes": read_live_writes(workspace, run),
        "set_back": find_run_set_backs(workspace.ledger, workspace.engines, run)[0],
    }


def hint_next_step(command: _Command) -> _Command:
    """Add the next command to a refusal by the ledger, which knows the state of the run but not the commands."""

    @wraps(command)
    def with_hint(workspace: Workspace, actor: Actor, *args: Any, **kwargs: Any) -> Any:
        try:
            return command(workspace, actor, *args, **kwargs)
        except StateRefused as error:
            if error.hint is None and (run_id := error.fields.get("run_id")):
                error.hint = next(iter(suggest_steps(workspace, actor, run_id)), f"errata status {run_id}")
            raise

    return cast("_Command", with_hint)
