"""`errata run --publish` on a run with waves: judge and publish each wave while later ones are computed.

Beside the worker loop, one thread judges the waves that are computed and another publishes those that may go, each in
order. A wave that waits for a person or for consumers holds up those behind it, but no computation and no verdict; it
goes as soon as it may. The threads keep no state: a process that is killed leaves whole waves, and the next one
continues from the ledger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import takewhile

from errata.approval.authorization import explain_unreleased
from errata.commands.publish.holds import explain_holds, list_awaited_holds, wait_for_holds
from errata.commands.publish.publish import publish_run
from errata.commands.publish.publish_wait import wait_for_turn
from errata.commands.publish.validate import bring_up_to_date, validate_run
from errata.delivery.payment import pay
from errata.errors import (
    ApprovalRefused,
    ErasureListMoved,
    NeedsAcceptance,
    PublishHeld,
    Rebased,
    ScopeLocked,
    StateRefused,
    ValidationRejected,
)
from errata.failpoints import failpoint
from errata.ledger import RunRecord, WaveRecord
from errata.model.audit import Actor
from errata.model.run import FINAL, RunState
from errata.model.waves import WaveState
from errata.publishing.erasure import MOST_VERDICTS
from errata.publishing.waves import find_next_wave, find_stop_reason, turn_view
from errata.text.exceptions import first_line
from errata.text.numbers import format_moment, plural
from errata.workspace import Workspace

_POLL_SECONDS = 0.5
_RETRY_SECONDS = 60.0
"""How long a wave waits after a refusal, each of which is audited."""
_PAY_SECONDS = 30.0
_WAITS = (ApprovalRefused, PublishHeld, ScopeLocked)
"""What a wave may wait for while the rest is computed: a person, a pause, a consumer, another publisher."""


@dataclass(slots=True)
class WaveStream:
    """Judges and publishes the waves of one run, one at a time each."""

    workspace: Workspace
    actor: Actor
    run_id: str
    done: int = 0  # waves that were judged or published
    said: str = ""
    retry_at: float = 0.0
    seen: tuple[object, tuple[RunRecord, tuple[WaveRecord, ...]]] | None = None  # with the head of the audit log
    pay_at: float = 0.0
    verdicts: dict[int, int] = field(default_factory=dict)  # by wave, if the list of erased subjects moved

    def judge_next(self) -> bool:
        """Judge the first wave that is computed and not judged; False when there is none now."""
        run, waves = self._read()
        if run.state in FINAL or run.state is RunState.PAUSED:
            return False
        # in order: the rules of the whole run add up what was measured before
        computed = takewhile(lambda one: one.state is not WaveState.COMPUTING, waves)
        staged = next((one for one in computed if one.state is WaveState.STAGED), None)
        if staged is None:
            return False
        if self._judge(staged):
            failpoint("waves.after_verdict")
            self.done += 1
        return True

    def _judge(self, wave: WaveRecord) -> bool:
        """Judge a wave; False if another process did meanwhile."""
        try:
            validate_run(self.workspace, self.actor, self.run_id, {}, wave=wave.n)
        except Rebased as again:
            self.workspace.narrate(again.message)  # its chunks are computed again
        except NeedsAcceptance as waits:
            self.workspace.narrate(f"wave {wave.n} waits: {waits.message}")
        except StateRefused:
            if not self._has_moved(wave):
                raise
            return False
        return True

    def publish_next(self) -> bool:
        """Publish the next wave if it may go now; False when it may not."""
        run, waves = self._read()
        upcoming = find_next_wave(waves)
        if run.state in FINAL or run.state is RunState.PAUSED or time.monotonic() < self.retry_at:
            return False
        if upcoming is None or upcoming.state is not WaveState.VALIDATED:
            return False
        # looked up first, because a publication that is refused is audited, and this asks again all the time
        if waits := self._explain_wait(run, waves, upcoming):
            self._say(f"wave {upcoming.n} waits: {waits}")
            return False
        return self._publish(upcoming)

    def _read(self) -> tuple[RunRecord, tuple[WaveRecord, ...]]:
        """The run and its waves, which are read again when the ledger has changed: its audit log shows every change."""
        ledger, seen = self.workspace.ledger, self.seen
        head = ledger.audit.head()
        if seen is None or seen[0] != head:
            now = ledger.read_together(lambda: (ledger.runs.get(self.run_id), ledger.waves.list(self.run_id)))
            seen = self.seen = (head, now)
        return seen[1]

    def _explain_wait(self, run: RunRecord, waves: tuple[WaveRecord, ...], upcoming: WaveRecord) -> str:
        """What a wave that passed its gate waits for; empty if for nothing."""
        context = self.workspace.open_run(self.run_id, self.actor)
        turn = turn_view(self.workspace, run, context.manifest, waves)
        if turn is not None and turn.stopped:
            return turn.stopped
        if turn is not None and turn.not_before:
            return f"the pause of {turn.pause} after the last wave ends {format_moment(turn.not_before)} UTC"
        wave = context.narrow(upcoming.n)
        if unreleased := explain_unreleased(wave):
            return unreleased
        if held := explain_holds(wave):
            self._pay_meanwhile()
        return held

    def _pay_meanwhile(self) -> None:
        """Try again what could not be paid: consumers that wait may not have got their message."""
        if time.monotonic() >= self.pay_at:
            self.pay_at = time.monotonic() + _PAY_SECONDS
            pay(self.workspace, self.actor, run_id=self.run_id)

    def _publish(self, upcoming: WaveRecord) -> bool:
        n = upcoming.n
        try:
            done = publish_run(self.workspace, self.actor, self.run_id, None, by_itself=True)
        except Rebased as live_won:
            self._say(live_won.message)
            return True
        except _WAITS as waits:
            self._say(f"wave {n} waits: {waits.message}")
            if not self._list_awaited_holds():  # the next looks see holds without a try
                self.retry_at = time.monotonic() + _RETRY_SECONDS
            return False
        except ErasureListMoved as moved:
            return self._judge_again(upcoming, moved)
        except StateRefused:
            if not self._has_moved(upcoming):
                raise
            return True
        self._say(f"wave {n} of {len(done.waves)} is visible: {plural(len(done.partitions), 'partition')}")
        failpoint("waves.between")
        self.done += 1
        return True

    def _judge_again(self, upcoming: WaveRecord, moved: ErasureListMoved) -> bool:
        """Judge a wave once more whose verdict is older than the list of erased subjects; it is tried again then."""
        self.verdicts[upcoming.n] = self.verdicts.get(upcoming.n, 1) + 1
        if self.verdicts[upcoming.n] > MOST_VERDICTS:
            raise moved
        self._say(f"{moved.message}; this is done now")
        self._judge(upcoming)
        return True

    def _has_moved(self, seen: WaveRecord) -> bool:
        """Whether another process has judged or published the wave since it was seen."""
        return self._read()[1][seen.n - 1].state is not seen.state

    def _say(self, text: str) -> None:
        if text != self.said:
            self.said = text
            self.workspace.narrate(text)

    def drain(self) -> bool:
        """Judge and publish everything that may go, with pauses and waits; whether anything was done."""
        context, before = self.workspace.open_run(self.run_id, self.actor), self.done
        while True:
            with publish_beside(self):
                pass
            if self._is_only_paused():
                wait_for_turn(context)
            elif holds := self._list_awaited_holds():
                wait_for_holds(context, holds)
            else:
                return self.done > before

    def _is_only_paused(self) -> bool:
        """Whether the next wave waits for nothing but the pause after the last one."""
        run, waves = self._read()
        upcoming = find_next_wave(waves)
        manifest = self.workspace.ledger.runs.manifest(self.run_id, self.actor)
        turn = turn_view(self.workspace, run, manifest, waves)
        can_go = upcoming is not None and upcoming.state is WaveState.VALIDATED
        return can_go and turn is not None and turn.not_before is not None and not turn.stopped

    def _list_awaited_holds(self) -> tuple[str, ...]:
        """Ids of the holds that are all that the next wave waits for."""
        run, waves = self._read()
        upcoming = find_next_wave(waves)
        if run.state in FINAL or run.state is RunState.PAUSED or upcoming is None:
            return ()
        wave = self.workspace.open_run(self.run_id, self.actor).narrow(upcoming.n)
        if find_stop_reason(self.workspace, run) or explain_unreleased(wave):
            return ()
        return tuple(one.hold_id for one in list_awaited_holds(wave))


@dataclass(slots=True)
class _Threads:
    """The two threads of a stream and what they tell each other."""

    stream: WaveStream
    given_up: threading.Event = field(default_factory=threading.Event)
    computed: threading.Event = field(default_factory=threading.Event)  # no wave is added to those to judge
    judged: threading.Event = field(default_factory=threading.Event)  # no wave is added to those to publish
    verdict: threading.Event = field(default_factory=threading.Event)  # there is one: look again
    failures: list[BaseException] = field(default_factory=list)

    def judge(self) -> None:
        self._repeat(self.stream.judge_next, self.computed, lambda: self.computed.wait(_POLL_SECONDS))
        self.judged.set()
        self.verdict.set()

    def publish(self) -> None:
        def wait() -> None:
            self.verdict.wait(_POLL_SECONDS)
            self.verdict.clear()

        self._repeat(self.stream.publish_next, self.judged, wait)

    def _repeat(self, act: Callable[[], bool], last: threading.Event, wait: Callable[[], object]) -> None:
        try:
            while not self.given_up.is_set():
                is_last = last.is_set()  # before the look, which then sees everything
                if act():
                    self.verdict.set()
                elif is_last:
                    return
                else:
                    wait()
        except BaseException as error:  # noqa: BLE001  raised again in the caller
            self.failures.append(error)
            self.stream.workspace.narrate(f"no further wave goes out, and started chunks finish: {first_line(error)}")


@contextmanager
def publish_beside(stream: WaveStream) -> Iterator[None]:
    """Judge and publish waves in threads of their own while the caller works; raises what went wrong there.

    When the caller is done, all that may go without a wait goes first. When the caller fails, a verdict or a
    publication that has begun ends first: it holds locks, and its outcome has to be recorded.
    """
    both = _Threads(stream)
    threads = [
        # each in a copy of this context, which has the run for log lines and the span of the command
        threading.Thread(target=copy_context().run, args=(act,), name=f"waves-{act.__name__}", daemon=True)
        for act in (both.judge, both.publish)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    except BaseException:
        both.given_up.set()
        raise
    finally:
        both.computed.set()
        for thread in threads:
            thread.join()
    if both.failures:
        failure = both.failures[0]
        if isinstance(failure, ValidationRejected) and failure.fields.get("validation"):
            bring_up_to_date(stream.workspace, failure)
        raise failure
