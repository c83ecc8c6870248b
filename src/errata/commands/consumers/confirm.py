"""`errata consumers confirm`: a person says that a reader is stopped, or started on its repaired checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.approval.permissions import list_owners, require_person, require_role
from errata.commands.consumers.check import find_open_repair
from errata.delivery.payment import pay_queues
from errata.errors import EngineError, NotFound, PermissionRefused, StateRefused
from errata.ledger import OutboxItem, RunRecord
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.effect import STOP, describe_repair, find_start_problem
from errata.model.consumer.outbox import ItemState
from errata.model.product import Role
from errata.model.run import FINAL, RunState
from errata.publishing.streams.positions import CONFIRMED, STARTED, STOPPED, list_streams, read_stream
from errata.views.consumers import ConfirmView
from errata.workspace import Workspace

_MAY = (Role.OPERATOR, Role.PUBLISHER)


def confirm_reader(workspace: Workspace, actor: Actor, run_id: str, name: str) -> ConfirmView:
    """Record that a reader was stopped before the publication, or started on its copy after it.

    What can be seen is checked: a reader that is stopped does not write to its checkpoint, and one that was started on
    a copy has done a batch there and none on the old checkpoint.
    """
    run = workspace.ledger.runs.get(run_id)
    stream = _find_stream(workspace, run, name)
    _require_owner(workspace, actor, run, stream)
    item = find_open_repair(workspace, stream.name, run.table)
    if item is not None and item.run_id == run.run_id and item.progress.get("step"):
        return _confirm_started(workspace, actor, run, stream, item)
    if stream.on_replace == STOP and run.state not in FINAL:
        return _confirm_stopped(workspace, actor, run, stream)
    raise _nothing_to_confirm(run, stream, item)


def _find_stream(workspace: Workspace, run: RunRecord, name: str) -> Consumer:
    streams = {one.name: one for one in list_streams(workspace, run.product)}
    if name not in streams:
        raise NotFound(
            f"{name} is no stream that reads {run.product}; expected one of {', '.join(streams) or 'none'}",
            state="nothing was changed",
            hint=f"errata consumers check {run.product}",
        )
    return streams[name]


def _require_owner(workspace: Workspace, actor: Actor, run: RunRecord, stream: Consumer) -> None:
    """Require the owner of the reader, or a member of the team; where nobody is known as that, an operator."""
    project, action = workspace.project, f"confirm {stream.name}"
    require_person(workspace, actor, _MAY, action, run.run_id)
    owners = list_owners(project, stream.owner)
    if not owners:
        require_role(workspace, actor, _MAY, action, run.run_id, persons=True)
    elif actor.person not in owners and not project.single_user:
        error = PermissionRefused(
            f"{action} was refused; expected {' or '.join(owners)}, the owner of the reader, found {actor.person}",
            state="nothing was changed",
            hint=f"errata consumers confirm {run.run_id} {stream.name} --as {owners[0]}",
            person=actor.person,
        )
        workspace.ledger.audit.record_refusal(run.run_id, actor, action, error.message)
        raise error


def _confirm_stopped(workspace: Workspace, actor: Actor, run: RunRecord, stream: Consumer) -> ConfirmView:
    state = read_stream(workspace, stream, run.table)
    found = state.checkpoint
    told = {"checkpoint": found.location if found else stream.checkpoint, "digest": found.digest if found else ""}
    body = {"consumer": stream.name, "step": STOPPED, **told}
    workspace.ledger.audit.note(run.run_id, actor, CONFIRMED, body)
    note = state.problem or ("" if found else "no checkpoint is declared for it, so that nothing shows whether it runs")
    return ConfirmView(
        run.run_id, stream.name, STOPPED, str(told["checkpoint"] or ""), warnings=(note,) if note else ()
    )


def _confirm_started(
    workspace: Workspace, actor: Actor, run: RunRecord, stream: Consumer, item: OutboxItem
) -> ConfirmView:
    step = item.progress["step"]
    store = workspace.engines.checkpoints
    try:
        problem = find_start_problem(step, store.read(step["checkpoint"]), store.read(step["copy"]))
    except (EngineError, NotFound) as error:
        problem = error.message
    if problem:
        raise StateRefused(
            f"confirm {stream.name} was refused; {problem}",
            state="nothing was changed",
            hint="\n".join(describe_repair(stream.name, run.run_id, step)),
            consumer=stream.name,
        )
    body = {"consumer": stream.name, "step": STARTED, "key": item.key, "repair": dict(step)}
    workspace.ledger.audit.note(run.run_id, actor, CONFIRMED, body)
    workspace.ledger.outbox.retry([item.item_id], actor)
    # only what is owed to this reader: what others take would use up the time of the command
    warnings = pay_queues(workspace, actor, lambda: [item.queue]).warnings
    after = workspace.ledger.outbox.get(item.item_id)
    steps, waits = _find_next(run, stream, step, after)
    is_done = after.state is ItemState.PAID
    return ConfirmView(run.run_id, stream.name, STARTED, step["copy"], is_done, steps, waits, tuple(warnings))


def _find_next(
    run: RunRecord, stream: Consumer, done: Mapping[str, Any], item: OutboxItem
) -> tuple[tuple[str, ...], str]:
    """What a person does next, and what that waits for; both are empty once the reader is past the publication."""
    if item.state is ItemState.PAID:
        return (), ""
    following = item.progress.get("step")
    if following and following["copy"] != done["copy"]:
        return describe_repair(stream.name, run.run_id, following), ""
    # with this very step, somebody else is paying the item right now
    return (f"errata deliver {run.run_id}",), "" if following else item.waits or item.last_error or ""


def _nothing_to_confirm(run: RunRecord, stream: Consumer, item: OutboxItem | None) -> StateRefused:
    if item is not None and item.run_id != run.run_id:
        why, hint = f"the repair for {item.run_id} comes first", f"errata consumers confirm {item.run_id} {stream.name}"
    elif item is not None:
        why = item.waits or item.last_error or "its repaired checkpoint is not prepared yet"
        hint = f"errata deliver {run.run_id}"
    else:
        published = run.state in (RunState.PUBLISHED, RunState.PART_PUBLISHED)
        why = f"nothing is owed to it by this run ({'published' if published else run.state.value})"
        hint = f"errata consumers check {run.product}"
    return StateRefused(
        f"confirm {stream.name} was refused; {why}", state="nothing was changed", hint=hint, consumer=stream.name
    )
