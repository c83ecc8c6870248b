"""Leases of live jobs: check for freezes, and hold a lease so that no correction freezes partitions during a write.

Needs only the project and the ledger, no lake and no JVM. A thread renews the lease while the job writes. A lease that
expired (because the machine slept, say) is lost only if a run froze the partitions since; the job can check
:attr:`Lease.is_held` before it commits, and is warned at the end.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date

from errata.errors import EngineError, Frozen, UsageError
from errata.ledger import FreezeRecord, Owner, current_owner
from errata.live_writers.foreign_commits import LIVE_PROPERTY
from errata.live_writers.input_report import read_for_report, record_report
from errata.model.audit import Actor
from errata.model.duration import to_seconds
from errata.model.partition import Grain, format_ranges, parse_list, parse_partition, sort_oldest_first
from errata.model.run import RUN_MOVES, RunState
from errata.text.numbers import format_moment
from errata.views import FreezeView, FrozenView
from errata.worker.heartbeat import beating, write_lease
from errata.workspace import Workspace

Partitions = str | Sequence[str | date] | None
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission to write: no run freezes these partitions while the lease is held."""

    table: str
    partitions: tuple[str, ...]
    _workspace: Workspace = field(repr=False)
    _token: str = field(repr=False)
    job: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """Snapshot properties by which a commit says that this job made it; ``errata audit gaps`` looks for them."""
        return {LIVE_PROPERTY: self.job}

    @property
    def is_held(self) -> bool:
        """Renew the lease; False if it is lost. A job that may have slept checks this right before it commits."""
        return self._workspace.ledger.freezes.renew_live_write(self._token, write_lease())


def describe_freezes(workspace: Workspace, table: str, partitions: Partitions) -> FrozenView:
    """Open freezes of these partitions of a governed table, with their runs and ends; reads only."""
    target = workspace.product_of(table).target
    wanted = _parse_partitions(target.grain, partitions)
    found = workspace.ledger.freezes.find_freezes(target.table, wanted)
    views = tuple(freeze_view(workspace, one, wanted) for one in found)
    return FrozenView(target.table, target.grain.value, wanted, bool(views), views)


def wait_for_freezes(workspace: Workspace, table: str, partitions: Partitions, wait: str) -> FrozenView:
    """Wait for freezes to end; raise ``Frozen`` if one does not end in time. Takes no lease."""
    ends, said = time.monotonic() + _parse_wait(wait), False
    while (view := describe_freezes(workspace, table, partitions)).frozen:
        if time.monotonic() >= ends:
            raise _frozen_error(workspace, view)
        said = said or _announce_wait(workspace, view, wait)
        workspace.sleep(_POLL_SECONDS)
    return view


@contextmanager
def acquire_write_lease(
    workspace: Workspace,
    actor: Actor,
    table: str,
    partitions: Partitions,
    *,
    wait: str,
    name: str | None,
    report: bool = False,
) -> Iterator[Lease]:
    """Hold a lease while the body writes; raise ``Frozen`` before the body runs if the partitions stay frozen.

    With ``report``, what the job reads and writes is recorded when the body ends without an exception.
    """
    target = workspace.product_of(table).target
    wanted, token = _parse_partitions(target.grain, partitions), secrets.token_hex(16)
    if report and not wanted:
        raise UsageError(
            "a report without partitions was refused; expected the partitions that the job writes",
            state="nothing was written",
        )
    owner = current_owner(name)
    ends, said = time.monotonic() + _parse_wait(wait), False
    workspace.ledger.create()
    # poll with reads, which block no writer; the decision is made by the write transaction that takes the lease
    while (view := describe_freezes(workspace, table, partitions)).frozen or _is_write_blocked(
        workspace, token, target.table, wanted, owner
    ):
        if view.frozen and time.monotonic() >= ends:
            told = {"job": owner.name, "table": target.table, "partitions": list(wanted)}
            workspace.ledger.audit.note(view.by[0].run_id, actor, "live.turned_away", told)
            raise _frozen_error(workspace, view)
        said = said or (view.frozen and _announce_wait(workspace, view, wait))
        workspace.sleep(_POLL_SECONDS if view.frozen else 0)
    lease = Lease(target.table, wanted, workspace, token, owner.name)
    try:
        with _keep_lease_alive(lease):
            reading = read_for_report(workspace, target.table, wanted, token) if report else None
            yield lease
            if reading and (missing := record_report(workspace, actor, reading, owner.name)):
                workspace.narrate(missing)
    finally:
        with suppress(EngineError):  # if the ledger is unavailable, the lease expires by itself
            workspace.ledger.freezes.end_live_write(token)


def _is_write_blocked(workspace: Workspace, token: str, table: str, partitions: tuple[str, ...], owner: Owner) -> bool:
    return bool(workspace.ledger.freezes.begin_live_write(token, table, partitions, owner, write_lease()))


@contextmanager
def _keep_lease_alive(lease: Lease) -> Iterator[None]:
    lost = threading.Event()

    def renew() -> bool:
        if not lease.is_held:
            lost.set()
        return not lost.is_set()

    try:
        with beating(write_lease(), renew, "live-write"):
            yield
    finally:
        if lost.is_set():
            warnings.warn(
                f"the lease on {lease.table} ran out while the job wrote, and a correction froze the partitions: what "
                "was written since is a conflict for that run, which will say so",
                RuntimeWarning,
                stacklevel=4,
            )


def _parse_wait(wait: str) -> int:
    """Parse a wait into seconds; ``m`` means minutes here, not months."""
    return to_seconds(f"{wait}in" if re.fullmatch(r"\d+m", wait, re.ASCII) else wait)


def _parse_partitions(grain: Grain, partitions: Partitions) -> tuple[str, ...]:
    """Partition names as the ledger stores them; empty means the whole table."""
    if partitions is None:
        return ()
    if isinstance(partitions, str):
        return parse_list(grain, partitions)
    return sort_oldest_first(grain, {parse_partition(grain, str(one)) for one in partitions})


def freeze_view(workspace: Workspace, one: FreezeRecord, wanted: Sequence[str] = ()) -> FreezeView:
    """View of a freeze, limited to these partitions (default: all of its partitions)."""
    run = workspace.ledger.runs.get(one.run_id)
    asked = set(wanted or one.partitions)
    shared = tuple(name for name in one.partitions if name in asked)
    return FreezeView(
        run_id=one.run_id,
        product=run.product,
        partitions=shared,
        reason=run.reason,
        requested_by=run.planned_by,
        started_by=one.person,
        since=one.opened_at,
        until=one.until,
        at_most=one.at_most,
    )


def _announce_wait(workspace: Workspace, view: FrozenView, wait: str) -> bool:
    """Tell the user what the job waits for; returns True, so that callers do it only once."""
    workspace.narrate(f"waiting {wait} at most for {view.table}: {_format_freezes(view)}")
    return True


def _format_freezes(view: FrozenView) -> str:
    return "; ".join(
        f"{format_ranges(Grain(view.grain), one.partitions)} by {one.run_id} ({one.reason}; asked by "
        f"{one.requested_by}, "
        f"started by {one.started_by}) since {format_moment(one.since)}, at most until {format_moment(one.at_most)} UTC"
        for one in view.by
    )


def _frozen_error(workspace: Workspace, view: FrozenView) -> Frozen:
    first = view.by[0]
    return Frozen(
        f"writing to {view.table} was refused; expected partitions that no correction holds, found frozen: "
        f"{_format_freezes(view)}",
        state="nothing was written",
        hint="write the other partitions and these later, or wait; "
        f"errata status {first.run_id} says how far it is; {_format_unfreeze_hint(workspace, first)}",
        table=view.table,
        partitions=[name for one in view.by for name in one.partitions],
        runs=list(dict.fromkeys(one.run_id for one in view.by)),
        until=max(one.at_most for one in view.by),
    )


def _format_unfreeze_hint(workspace: Workspace, held: FreezeView) -> str:
    """How to end the freeze; a run that is being published cannot be cancelled."""
    if RunState.CANCELLED in RUN_MOVES[workspace.ledger.runs.get(held.run_id).state]:
        return f'errata cancel {held.run_id} --reason "…" frees them'
    return f"it is being published: errata publish {held.run_id} frees them"
