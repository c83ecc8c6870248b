"""Ctrl-C in a real process, on tables in memory: what it says at once, and what is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from errata.cli.app.interrupt import describe_end, describe_interrupt, describe_state
from errata.ledger import Ledger, current_owner
from errata.model.audit import Actor
from errata.model.run import RunState
from support.memory_world import MemoryWorld

Make = Callable[..., MemoryWorld]
ANA = Actor("ana", "ana-os", "here")
TESTS = Path(__file__).parents[1]

PROGRAM = """
import sys, time
from pathlib import Path

from errata.cli.app.session import CliEnvironment
from errata.cli.main import main
from errata.failpoints import arm_from_environment
from support.memory_world import MemoryWorld, build
from support.world import PRODUCT_FILE

root, marker, woken = map(Path, sys.argv[1:4])
product = PRODUCT_FILE.replace("{mode: replace_partitions,", "{mode: replace_partitions, waves: {size: 1, pause: 1h},")


def slowly(ctx, raw):
    while not woken.exists():
        marker.touch()
        time.sleep(0.05)
    return build(ctx, raw)


state, person, *words = sys.argv[4:]
world = MemoryWorld.make(root, days=2, chunk_bytes="1KiB", transform=slowly, product=product)
run = world.to(state)
if words[0] == "validate":
    arm_from_environment(f"validate.after_measure=pause:{marker}")
if words[0] == "publish":
    world.client.publish(run, as_="bo")
    marker.touch()
sys.exit(
    main(
        ["--as", person, words[0], run, *words[1:]],
        CliEnvironment(open_project=lambda _directory, **options: world.another_client(**options)),
    )
)
"""


class Worker:
    """A command as a process of its own, in the middle of something that does not end by itself."""

    def __init__(self, place: Path, *words: str) -> None:
        self.root, self.marker, self.woken = place / "world", place / "marker", place / "woken"
        place.mkdir(exist_ok=True)
        script = place / "worker.py"
        script.write_text(PROGRAM)
        if words[0] != "approved":
            self.woken.touch()  # the chunks compute at once; the command waits for something else
        command = [sys.executable, str(script), str(self.root), str(self.marker), str(self.woken), *words]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": str(TESTS)}
        )
        until = time.monotonic() + 60
        while not self.marker.exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def read_line(self, words: str) -> str:
        """The next line of its messages with these words."""
        assert self.process.stderr is not None
        return next(line.rstrip() for line in self.process.stderr if words in line)

    def ledger(self) -> Ledger:
        """Its ledger."""
        return Ledger.open(f"sqlite:///{self.root}/.errata/ledger.db")


@pytest.fixture
def worker(tmp_path: Path) -> object:
    """A worker that is ended with the test."""
    made = Worker(tmp_path / "place", "approved", "ana", "run", "--parallel", "1")
    yield made
    made.process.kill()
    made.process.communicate()


def test_the_first_says_at_once_what_it_waits_for_and_gives_back_the_rest(worker: Worker) -> None:
    """It names the chunk and what a second one does, while the chunk still computes; then it ends with exit 130."""
    worker.interrupt()
    said = worker.read_line("interrupted:")
    assert worker.process.poll() is None
    assert said.startswith("interrupted: waiting for c001 to stop; a commit that landed is recorded")
    assert "Ctrl-C again ends at once: nothing is lost" in said
    worker.woken.touch()
    assert worker.process.wait(timeout=30) == 130
    with worker.ledger() as ledger:
        (run,) = ledger.runs.list()
        counts = ledger.progress.counts(run.run_id)
        assert (run.state, counts.running, counts.done + counts.pending) == (RunState.RUNNING, 0, 2)


def test_the_second_ends_at_once_and_the_next_worker_goes_on(worker: Worker) -> None:
    """It does not wait for the chunk; what a dead worker held is claimed again, and no try is lost."""
    worker.interrupt()
    worker.read_line("interrupted:")
    pressed = time.monotonic()
    worker.interrupt()
    assert worker.process.wait(timeout=10) == 130
    assert time.monotonic() - pressed < 5
    with worker.ledger() as ledger:
        (run,) = ledger.runs.list()
        assert ledger.progress.counts(run.run_id).running == 1
        owner = current_owner("next")
        claimed = ledger.chunks.claim(run.run_id, owner, lease_seconds=60, actor=ANA)
        assert claimed is not None
        assert ledger.audit.verify().ok


@pytest.mark.parametrize(
    "words, said",
    [
        (("staged", "ana", "validate"), "interrupted: stopping the measurement; the staged chunks"),
        (
            ("validated", "bo", "publish", "--wait"),
            "interrupted: not waiting any longer for wave 2; what is published",
        ),
    ],
)
def test_validate_and_a_pause_end_with_the_first(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """They say what is kept, and the ledger is as it was before the command, or in part published."""
    worker = Worker(tmp_path / "place", *words)
    try:
        if "--wait" in words:
            worker.read_line("wave 2  goes")  # after the line that counts waves
        worker.interrupt()
        assert worker.read_line("interrupted:").startswith(said)
        assert worker.process.wait(timeout=30) == 130
    finally:
        worker.process.kill()
        worker.process.communicate()
    with worker.ledger() as ledger:
        (run,) = ledger.runs.list()
        assert run.state.value == ("part_published" if "--wait" in words else "staged")
        assert ledger.audit.verify().ok


@pytest.mark.parametrize(
    "words, under_way, said",
    [
        ("run bf-1", ("c1", "c2"), "waiting for c1 and c2 to stop"),
        ("-C lake --as ana run bf-1", (), "what is staged is kept"),
        ("validate bf-1", (), "stopping the measurement"),
        ("publish bf-1 --wait", ("wave 2",), "not waiting any longer for wave 2; what is published stays published"),
        ("publish bf-1", (), "a commit in progress lands whole or not at all"),
        ("try fin.sales 2026-01-01", (), "nothing was written"),
        ("check", (), "nothing was changed"),
    ],
)
def test_every_long_command_says_what_happens_and_what_a_second_one_does(
    words: str, under_way: tuple[str, ...], said: str
) -> None:
    """One sentence each."""
    told = describe_interrupt(words.split(), under_way)
    assert said in told
    assert "Ctrl-C again ends at once: " in told


def test_the_last_words_tell_state_and_next_command_and_give_the_cursor_back() -> None:
    """On a line of their own, below the progress that they end; a log gets no control characters."""
    told = describe_end(["run", "bf-1", "--as", "ana"], is_terminal=True)
    assert told.startswith("\x1b[?25h\nended at once; main is unchanged;")
    assert told.endswith("\nhint: to continue: errata run bf-1 --as ana\n")
    assert "\x1b" not in describe_end(["publish", "bf-1"], is_terminal=False)


@pytest.mark.parametrize("words", ["check", "-C lake stale fin.sales", "show bf-1", "impact fin.sales"])
def test_a_command_that_only_looks_speaks_of_no_commit(words: str) -> None:
    """Nothing was changed, and there is nothing to continue."""
    assert describe_state(words.split()) == "nothing was changed"
    told = describe_end(words.split(), is_terminal=False)
    assert "commit" not in told
    assert told.endswith(f"\nhint: to look again: errata {words}\n")


def test_a_command_that_is_over_in_a_moment_says_nothing() -> None:
    """``status --watch`` is ended by Ctrl-C on purpose."""
    assert describe_interrupt(["status", "--watch"], ()) == ""


def test_words_of_a_program_are_no_command_of_errata() -> None:
    """What `errata live write` starts may commit, whatever it is called."""
    assert describe_state(["live", "write", "--", "check"]).startswith("a commit to main landed whole or not at all")
