"""What a publication has to respect before it may reach the streams that read the table."""

from __future__ import annotations

from collections.abc import Sequence

from errata.approval.release import audit_refusal
from errata.errors import StateRefused
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.effect import STOP, find_operation
from errata.model.consumer.stream import APPEND, DELETE, OVERWRITE
from errata.model.partition import format_ranges
from errata.model.side_tables import is_side_table_mode
from errata.model.table import DataFile
from errata.planning.consumer_rules import STREAMS
from errata.publishing.expected_files import load_expected_files
from errata.publishing.streams.positions import STOPPED, list_confirmations, list_streams, read_stream
from errata.text.numbers import format_moment
from errata.workspace import RunContext

_NAMES = {APPEND: "an append", OVERWRITE: "an overwrite", DELETE: "a delete"}


def require_stopped_readers(context: RunContext, scope: Sequence[str]) -> None:
    """Refuse to replace rows while a stream that has to be stopped for it may be running.

    An override of the plan's rule sets it aside.
    """
    streams = [one for one in _list_concerned(context) if one.on_replace == STOP]
    if not streams or not _removes_files(context, scope):
        return
    for stream in streams:
        if why := find_running_reason(context, stream):
            error = StateRefused(
                f"publish of {context.run_id} was refused; {stream.name} has to be stopped first (on_replace: stop), "
                f"and {why}",
                state="main is unchanged",
                hint=f"stop {stream.name}, then errata consumers confirm {context.run_id} {stream.name}",
                consumer=stream.name,
            )
            raise audit_refusal(context.workspace, context.actor, context.run, "publish", error)


def require_planned_operation(context: RunContext, scope: Sequence[str], files: Sequence[DataFile]) -> None:
    """Refuse a publication that streams would meet in another way than the rest of the run.

    An override of the plan's rule sets it aside.
    """
    streams = _list_concerned(context)
    if not streams:
        return
    whole, wanted = context.widen(), set(scope)
    planned = find_operation(removes=_removes_files(context, whole.manifest.partitions), adds=True)
    found = find_operation(
        removes=_removes_files(context, scope), adds=any(not wanted.isdisjoint(file.partitions) for file in files)
    )
    if found != planned:
        error = StateRefused(
            f"publish of {context.run_id} was refused; {format_ranges(whole.manifest.target.grain, scope)} would be "
            f"published by {_NAMES[found]}, and the run is planned as {_NAMES[planned]}: "
            f"{', '.join(one.name for one in streams)} would not meet them in the same way",
            state="main is unchanged",
            hint=f'errata plan {context.run.product} … --supersede {context.run_id} --override {STREAMS}="…"',
        )
        raise audit_refusal(context.workspace, context.actor, context.run, "publish", error)


def _list_concerned(context: RunContext) -> tuple[Consumer, ...]:
    """Streams that a publication of the run would reach."""
    is_overridden = any(override.rule == STREAMS for override in context.manifest.overrides)
    if is_overridden or is_side_table_mode(context.manifest.publish):
        return ()
    return list_streams(context.workspace, context.run.product)


def _removes_files(context: RunContext, partitions: Sequence[str]) -> bool:
    if context.manifest.target.rewrite is not None:
        return True
    rebases = context.ledger.rebases.list(context.run_id)
    return any(load_expected_files(context.workspace, context.manifest, rebases, partitions).values())


def find_running_reason(context: RunContext, stream: Consumer) -> str:
    """Why nothing shows that a stream is stopped; empty if a person confirmed it and its checkpoint did not move since.

    A person's word counts alone where no checkpoint is declared, or where it could not be read then either.
    """
    confirmed = [
        entry
        for entry in list_confirmations(context.workspace, stream.name, context.run_id)
        if entry.body["step"] == STOPPED
    ]
    if not confirmed:
        return "nobody has confirmed that it is"
    last = confirmed[-1]
    state = read_stream(context.workspace, stream, context.run.table)
    digest = state.checkpoint.digest if state.checkpoint else ""
    if digest == last.body["digest"]:
        return ""
    when = f"{last.actor.person} confirmed it at {format_moment(last.at)} UTC"
    return f"its checkpoint has changed since {when}: it still runs"
