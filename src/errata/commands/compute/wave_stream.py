"""`errata run --publish` on a run with waves: judge and publish each wave while later ones are computed.

A thread beside the worker loop looks for the first wave that is computed and not judged, and for the next one that may
go. A wave that waits for a person holds up those behind it, but no computation; it goes as soon as it is released. The
thread keeps no state: a process that is killed leaves whole waves, and the next one continues from the ledger.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile

from errata.commands.publish.holds import is_waiting, wait_for_holds
from errata.commands.publish.publish import publish_run
from errata.commands.publish.publish_wait import wait_for_turn
from errata.commands.publish.validate import validate_run
from errata.errors import ApprovalRefused, NeedsAcceptance, PublishHeld, Rebased, ScopeLocked, StateRefused
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.run import FINAL, RunState
from errata.model.waves import WaveState
from errata.publishing.waves import find_next_wave, find_stop_reason, turn_view
from errata.text.exceptions import first_line
from errata.text.numbers import plural
from errata.workspace import Workspace

_POLL_SECONDS = 1.0
_WAITS = (ApprovalRefused, NeedsAcceptance, PublishHeld, ScopeLocked)
"""What a wave may wait for while the rest is computed: a person, a pause, a consumer, another publisher."""


@dataclass(slots=True)
class WaveStream:
    """Judges and publishes the waves of one run, one at a time."""

    workspace: Workspace
    actor: Actor
    run_id: str
    said: str = ""
    holds: tuple[str, ...] = ()  # that the next wave waits for

    def step(self) -> bool:
        """Judge or publish one wave; False when there is nothing to do now."""
        run, waves = self.workspace.ledger.runs.get(self.run_id), self.workspace.ledger.waves.list(self.run_id)
        if run.state in FINAL or run.state is RunState.PAUSED:
            return False
        upcoming = find_next_wave(waves)
        may_go = upcoming is not None and upcoming.state is WaveState.VALIDATED
        # first: readers should not wait for the verdict on a later wave
        if upcoming and may_go and not find_stop_reason(self.workspace, run) and self._publish(upcoming.n):
            return True
        # in order: the rules of the whole run add up what was measured before
        judgeable = takewhile(lambda one: one.state is not WaveState.COMPUTING, waves)
        staged = next((one for one in judgeable if one.state is WaveState.STAGED), None)
        return staged is not None and self._judge(staged.n)

    def _judge(self, n: int) -> bool:
        try:
            validate_run(self.workspace, self.actor, self.run_id, {}, wave=n)
        except Rebased as live_won:
            self._say(live_won.message)  # its chunks are computed again
        except NeedsAcceptance as waits:
            self._say(f"wave {n} waits: {waits.message}")
        except StateRefused as busy:
            if busy.fields.get("found") != RunState.PUBLISHING:
                raise
            self._say(f"wave {n} is judged when the wave that another process publishes is out")
            return False
        failpoint("waves.after_verdict")
        return True

    def _publish(self, n: int) -> bool:
        try:
            done = publish_run(self.workspace, self.actor, self.run_id, None, by_itself=True)
        except Rebased as live_won:
            self._say(live_won.message)
            return True
        except _WAITS as waits:
            self.holds = tuple(waits.fields.get("holds", ()))
            self._say(f"wave {n} waits: {waits.message}")
            return False
        self.holds = ()
        self._say(f"wave {n} of {len(done.waves)} is visible: {plural(len(done.partitions), 'partition')}")
        failpoint("waves.between")
        return True

    def _say(self, text: str) -> None:
        if text != self.said:
            self.said = text
            self.workspace.narrate(text)

    def drain(self) -> bool:
        """Judge and publish everything that may go, with pauses and waits; whether anything was done."""
        context = self.workspace.open_run(self.run_id, self.actor)
        has_done = False
        while (is_step := self.step()) or self._is_only_paused() or is_waiting(context, self.holds):
            has_done |= is_step
            wait_for_turn(context)
            wait_for_holds(context, self.holds)
        return has_done

    def _is_only_paused(self) -> bool:
        """Whether the next wave waits for nothing but the pause after the last one."""
        run, waves = self.workspace.ledger.runs.get(self.run_id), self.workspace.ledger.waves.list(self.run_id)
        upcoming = find_next_wave(waves)
        manifest = self.workspace.ledger.runs.manifest(self.run_id, self.actor)
        turn = turn_view(self.workspace, run, manifest, waves)
        can_go = upcoming is not None and upcoming.state is WaveState.VALIDATED
        return can_go and turn is not None and turn.not_before is not None and not turn.stopped


@contextmanager
def publish_beside(stream: WaveStream) -> Iterator[None]:
    """Judge and publish waves in a thread of their own while the caller computes; raises what went wrong there."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not stop.is_set():
                if not stream.step():
                    stop.wait(_POLL_SECONDS)
        except BaseException as error:  # noqa: BLE001  raised again in the caller
            failures.append(error)
            stream.workspace.narrate(f"no further wave goes out, and started chunks finish: {first_line(error)}")

    thread = threading.Thread(target=work, name="waves", daemon=True)
    thread.start()
    try:
        yield
    finally:
        # a publication that has begun ends first: it holds locks, and its outcome has to be recorded
        stop.set()
        thread.join()
    if failures:
        raise failures[0]
