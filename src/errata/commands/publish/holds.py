"""Holds before a publication: open them, wait for notice and acknowledgements, and end them if it is refused.

The ledger decides, in the transaction of the intent, whether consumers were held as they asked for; this module opens
the holds and waits. It waits before the partitions are frozen, and afterwards the publication starts from its
beginning: every precondition is checked again.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from errata.approval.permissions import require_person
from errata.approval.release import audit_refusal
from errata.commands.consumers.acknowledge import is_owner
from errata.delivery.consumer_messages import owe_messages
from errata.delivery.payment import pay
from errata.errors import EngineError, ErrataError, PublishHeld, Refused, ScopeLocked, StateRefused
from errata.failpoints import failpoint
from errata.ledger import HoldRecord, PartitionState
from errata.model.consumer.declaration import Hold
from errata.model.consumer.hold import (
    WAITS,
    HoldRequest,
    Outlook,
    Outlooks,
    build_held_error,
    find_hold,
    judge_hold,
    list_held,
    to_instant,
)
from errata.model.consumer.outbox import HOLDING, Owed
from errata.model.duration import to_seconds
from errata.model.product import Role
from errata.model.waves import OUT
from errata.publishing.readers.ready_table import owe_ready, write_ready_table
from errata.publishing.waves import estimate_seconds_left
from errata.text.numbers import format_duration
from errata.worker.ledger_wait import retry_ledger_call
from errata.workspace import RunContext

_POLL_SECONDS = 2.0
_PAY_EVERY = 15
"""Looks at a hold between two payments of what is owed, so that a message that failed is tried again meanwhile."""


def hold_consumers(
    context: RunContext, scope: Collection[str], early: str | None, check: Callable[[], object]
) -> dict[str, Any]:
    """Hold the consumers of the product, and refuse while they have to be waited for.

    ``check`` refuses what could not be published anyway; it is called before anyone is asked to wait. ``early`` is a
    person's reason not to wait. Returns what the publication records about its holds.
    """
    wanted = dict(list_held(context.workspace.project.list_consumers(context.run.product)))
    if not wanted:
        return {}
    outlooks = _judge(context, wanted, scope)
    if any(outlook is Outlook.OVER for _, _, outlook in outlooks):
        check()
        with release_if_refused(context, scope):
            _open_holds(context, wanted)
        outlooks = _judge(context, wanted, scope)
    waiting = [one for _, one, outlook in outlooks if one is not None and outlook in WAITS]
    if early is not None and waiting:
        require_person(
            context.workspace, context.actor, (Role.PUBLISHER,), "publish before consumers are ready", context.run_id
        )
        context.ledger.holds.skip([one.hold_id for one in waiting], early, context.actor)
        outlooks = _judge(context, wanted, scope)
    if any(outlook is not Outlook.GO for _, _, outlook in outlooks):
        raise _refuse(context, outlooks)
    return {"holds": [one.hold_id for _, one, _ in outlooks if one is not None]}


@contextmanager
def release_if_refused(context: RunContext, scope: Collection[str]) -> Iterator[None]:
    """End the holds of a publication that is refused or fails; one that is only put off keeps them."""
    try:
        yield
    except (PublishHeld, ScopeLocked):
        raise
    except Exception as error:
        because = error.code if isinstance(error, ErrataError) else "failed"
        context.ledger.holds.end(context.run_id, context.actor, because, scope)
        if context.workspace.project.ready is not None:
            # best effort: the item that was owed with the hold makes sure of it
            with suppress(EngineError):
                write_ready_table(context.workspace, (context.run.table,))
        raise


def wait_for_holds(context: RunContext, hold_ids: Collection[str]) -> None:
    """Sleep until none of these holds makes the publication wait: its own, or those of a run that goes first."""
    wait_for_any([(context, hold_ids)])


def wait_for_any(waits: Sequence[tuple[RunContext, Collection[str]]]) -> bool:
    """Sleep until the holds of one of these publications no longer make it wait; False if there was no wait at all."""
    said, looks = "", itertools.count(1)
    workspace, run_ids = waits[0][0].workspace, {context.run_id for context, _ in waits}

    def look() -> list[HoldRecord]:
        found = [_list_waiting(context, hold_ids) for context, hold_ids in waits]
        return [one for each in found for one in each] if all(found) else []

    while waiting := retry_ledger_call(look, workspace):
        text = f"waiting for {_describe_wait(waiting, run_ids)}"
        if text != said:
            workspace.narrate(text)
            said = text
        if next(looks) % _PAY_EVERY == 0:
            for context, _ in waits:
                pay(workspace, context.actor, run_id=context.run_id)
        left = (min(_end_of(one, run_ids) for one in waiting) - workspace.ledger.now_ms()) / 1000
        workspace.sleep(min(_POLL_SECONDS, max(0.05, left)))
    return bool(said)


def list_awaited_holds(context: RunContext) -> tuple[HoldRecord, ...]:
    """Holds that make the publication of this run or wave wait now: its own, or those of a run that goes first.

    Empty also where consumers were not asked yet: the publication asks them. Reads only.
    """
    wanted = dict(list_held(context.workspace.project.list_consumers(context.run.product)))
    if not wanted:
        return ()
    outlooks = _judge(context, wanted, _list_unpublished(context, context.run.partitions))
    own = [one for _, one, outlook in outlooks if one is not None and outlook in WAITS]
    missing = {name for name, _, outlook in outlooks if outlook is Outlook.OVER}
    others = [one for one in context.ledger.holds.list_active() if one.run_id != context.run_id]
    return (*own, *(one for one in others if one.consumer in missing))


def explain_holds(context: RunContext) -> str:
    """Which consumers make the publication of this run or wave wait, and until when; empty if none does."""
    awaited = list_awaited_holds(context)
    return f"consumers are held: {_describe_wait(awaited, {context.run_id})}" if awaited else ""


def _describe_wait(holds: Sequence[HoldRecord], own: Collection[str]) -> str:
    names = sorted({one.consumer for one in holds})
    until = to_instant(max(_end_of(one, own) for one in holds))
    return f"{', '.join(names)}, at most until {until:%Y-%m-%d %H:%M:%S} UTC"


def _list_unpublished(context: RunContext, names: Sequence[str]) -> tuple[str, ...]:
    states = context.ledger.partitions.states(context.run_id)
    return tuple(name for name in names if states[name] is PartitionState.UNPUBLISHED)


def _list_waiting(context: RunContext, hold_ids: Collection[str]) -> list[HoldRecord]:
    now_ms, found = context.ledger.now_ms(), [context.ledger.holds.get(hold_id) for hold_id in hold_ids]
    return [
        one
        for one in found
        if (judge_hold(one, now_ms) in WAITS if one.run_id == context.run_id else one.is_active(now_ms))
    ]


def _end_of(one: HoldRecord, own: Collection[str]) -> int:
    """When the wait for a hold ends at the latest; ``own`` are the runs that wait."""
    return one.until if one.acknowledge or one.run_id not in own else one.notice_until


def _judge(context: RunContext, wanted: dict[str, Hold], scope: Collection[str]) -> Outlooks:
    known, now_ms = context.ledger.holds.list(context.run_id), context.ledger.now_ms()
    found = [(name, find_hold(known, name, scope, context.run.table)) for name in sorted(wanted)]
    return [(name, one, judge_hold(one, now_ms) if one else Outlook.OVER) for name, one in found]


def _open_holds(context: RunContext, wanted: dict[str, Hold]) -> None:
    """Open the holds that are missing, all or none; the messages are owed in the same transaction."""
    whole, snapshot_id = context.widen().run, context.engines.pins.refs(context.run.table).get("main")
    for name, terms in wanted.items():
        if terms.over == "run":
            _require_short_run(context, name, terms)
    requests = [
        HoldRequest(
            name,
            terms,
            _list_unpublished(context, (whole if terms.over == "run" else context.run).partitions),
            snapshot_id,
        )
        for name, terms in sorted(wanted.items())
    ]
    context.ledger.holds.open(
        context.run_id,
        requests,
        wave=context.wave.n if context.wave else 1,
        actor=context.actor,
        owes=lambda one: _list_owed(context, one),
    )
    failpoint("hold.after_open")
    write_ready_table(context.workspace, (context.run.table,))
    # now, because the notice has begun; a channel that does not work holds up nothing
    for warning in pay(context.workspace, context.actor, run_id=context.run_id).warnings:
        context.workspace.narrate(f"WARNING: {warning}")


def _list_owed(context: RunContext, one: HoldRecord) -> tuple[Owed, ...]:
    """What a hold owes: a message to its consumer, and the rows of the ready table."""
    project, until = context.workspace.project, to_instant(one.until).isoformat(timespec="seconds")
    payload = {"hold": one.hold_id, "until": until, "acknowledge": one.acknowledge, "on_timeout": one.on_timeout}
    told = owe_messages(
        project, context.run.product, HOLDING, one.partitions, consumer=one.consumer, payload=payload
    )  # fmt: skip
    return (*owe_ready(project, HOLDING), *told)


def _require_short_run(context: RunContext, consumer: str, terms: Hold) -> None:
    """Refuse a hold over the whole run that would end before the run does."""
    waves = [wave for wave in context.ledger.waves.list(context.run_id) if wave.state not in OUT]
    settings = context.manifest.publish.waves
    pauses = to_seconds(settings.pause) * (len(waves) - 1) if settings else 0
    computing = max(estimate_seconds_left(context.ledger.progress.chunks(context.run_id)).values(), default=0)
    seconds = max(pauses, computing)
    if seconds <= terms.at_most_seconds:
        return
    error = StateRefused(
        f"publish of {context.run_id} was refused; {consumer} would be held over the whole run, for about "
        f"{format_duration(seconds)}, and its hold lasts at most {format_duration(terms.at_most_seconds)}",
        state="main is unchanged, and nobody is held",
        hint=f"consumers.{consumer}.hold in errata.yaml: over: wave, or a longer at_most",
    )
    raise audit_refusal(context.workspace, context.actor, context.run, "publish", error)


def _format_owner(context: RunContext, consumer: str) -> str:
    """``--as`` the person who may acknowledge; empty where nobody has to be named."""
    project = context.workspace.project
    owner = project.consumers[consumer].owner
    able = [name for name in sorted(project.people) if is_owner(project, name, owner)]
    if project.single_user or not able:
        return ""
    return f" --as {shlex.quote(context.actor.person if context.actor.person in able else able[0])}"


def _refuse(context: RunContext, outlooks: Outlooks) -> Refused:
    """The error for a publication that waits, or that a consumer stopped; only the latter is on record."""
    error = build_held_error(context.run_id, outlooks, context.ledger.now_ms())
    for name, _, _ in outlooks:
        command = f"errata ack {context.run_id} {name}"
        error.hint = (error.hint or "").replace(f"{command}\n", f"{command}{_format_owner(context, name)}\n")
    stopped = [one.hold_id for _, one, outlook in outlooks if one is not None and outlook is Outlook.STOP]
    if stopped:
        context.ledger.holds.expire(stopped, context.actor)
        return audit_refusal(context.workspace, context.actor, context.run, "publish", error)
    return error
