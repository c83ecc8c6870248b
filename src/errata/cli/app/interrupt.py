"""Ctrl-C and SIGTERM: say at once what the command waits for; a second one ends the process. Handles signals.

The first becomes ``KeyboardInterrupt``, so that chunks are given back and locks released on the way out. The second
leaves that to the leases, as a killed process does: everything that was recorded is kept.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

EXIT_INTERRUPTED = 130

_LOOKING = ("stopping; nothing was changed", "nothing is lost")
_STOPPING = {
    "plan": ("stopping; a plan is recorded whole or not at all", "nothing is lost"),
    "try": ("stopping; nothing was written", "nothing is lost"),
    "run": ("stopping; what is staged is kept", "nothing is lost, errata run continues"),
    "submit": (
        "stopping the workers; what is staged is kept",
        "workers may continue; errata submit --stop ends them",
    ),
    "validate": (
        "stopping the measurement; the staged chunks and every recorded verdict are kept",
        "nothing is lost, errata validate measures again",
    ),
    "check": _LOOKING,
    "diff": _LOOKING,
    "doctor": ("stopping; no table of yours was changed", "nothing is lost"),
    "impact": _LOOKING,
    "report": _LOOKING,
    "stale": _LOOKING,
    "publish": (
        "stopping; a commit in progress lands whole or not at all",
        "the next command on this table looks whether it landed and records it",
    ),
    "rollback": (
        "stopping; a commit in progress lands whole or not at all",
        "the next command on this table looks whether it landed and records it",
    ),
}
"""By command that takes long: what happens now, and what a second Ctrl-C means."""
_CHANGE_MAIN = frozenset({"publish", "rollback", "--publish"})
"""Words of a command line that may commit to main."""
_WITH_VALUE = ("-C", "--as")
"""Options before a command that the next word belongs to."""
_ONLY_LOOK = frozenset(word for word, said in _STOPPING.items() if said is _LOOKING) | {
    "history", "quarantine", "recordings", "runbook", "runs", "show", "status", "why",
}  # fmt: skip
"""Commands that change no data, and no record that a decision rests on."""


def describe_interrupt(words: Sequence[str], under_way: Collection[str]) -> str:
    """What the first Ctrl-C does to this command; empty for a command that is over in a moment. Pure.

    ``under_way`` are the chunks in progress, or the wave that ``publish --wait`` waits for.

    >>> describe_interrupt(["run", "bf-1"], ["c0001", "c0002"])[:58]
    'interrupted: waiting for c0001 and c0002 to stop; a commit'
    """
    command = _find_command(words)
    if command not in _STOPPING:
        return ""
    now, then = _STOPPING[command]
    names = " and ".join(sorted(under_way))
    if names and command == "run":
        now = f"waiting for {names} to stop; a commit that landed is recorded, the rest is given back"
        then = "nothing is lost; others get the rest at the latest when its leases run out"
    elif names and command == "publish":
        now = f"not waiting any longer for {names}; what is published stays published"
        then = "nothing is lost, errata publish --wait continues"
    return f"interrupted: {now}. Ctrl-C again ends at once: {then}."


def describe_state(words: Sequence[str]) -> str:
    """The state of the data after an interrupted command. Pure.

    >>> describe_state(["run", "bf-1"]).partition(";")[0], describe_state(["publish", "bf-1"]).partition(";")[0]
    ('main is unchanged', 'a commit to main landed whole or not at all')
    >>> describe_state(["check"])
    'nothing was changed'
    """
    command = _find_command(words)
    if command in _ONLY_LOOK:
        return "nothing was changed"
    leaves_main = command in _STOPPING and _CHANGE_MAIN.isdisjoint(words)
    main = "main is unchanged" if leaves_main else "a commit to main landed whole or not at all"
    return f"{main}; finished work is recorded, the next command settles the rest"


def describe_next(words: Sequence[str]) -> str:
    """The command after an interrupted one: the same, which continues where it stopped, or looks again. Pure."""
    what = "to look again" if _find_command(words) in _ONLY_LOOK else "to continue"
    return f"{what}: {shlex.join(['errata', *words])}"


def _find_command(words: Sequence[str]) -> str:
    """The first word that is no option and no value of one.

    >>> _find_command(["-C", "check", "--as=bo", "publish", "bf-1"]), _find_command([])
    ('publish', '')
    """
    left = iter(words)
    for word in left:
        if word in _WITH_VALUE:
            next(left, None)
        elif not word.startswith("-"):
            return word
    return ""


_SHOW_CURSOR = "\x1b[?25h"


def describe_end(words: Sequence[str], *, is_terminal: bool) -> str:
    """The last words of a command that a second Ctrl-C ends: the state of the data and the next command. Pure.

    They begin on a line of their own, and on a terminal they show the cursor, which a progress display hides.
    """
    cursor = _SHOW_CURSOR if is_terminal else ""
    return f"{cursor}\nended at once; {describe_state(words)}\n\nhint: {describe_next(words)}\n"


@contextmanager
def interrupts_handled(words: Sequence[str], under_way: Collection[str]) -> Iterator[None]:
    """Handle interrupts of this command; outside the main thread, where signals cannot be handled, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            _write(describe_end(words, is_terminal=os.isatty(2)))
            # past every lock and thread that may hang: leases run out, and Java ends when this process is gone
            os._exit(EXIT_INTERRUPTED)
        # py4j logs the interruption of a call as an error, with a traceback
        for name in ("py4j", "py4j.java_gateway", "py4j.clientserver"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        if said := describe_interrupt(words, tuple(under_way)):
            _write(f"\n{said}\n")
        raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(text: str) -> None:
    """Write to stderr below Python's streams, whose locks the interrupted code may hold."""
    with suppress(OSError):  # nobody reads it any more
        os.write(2, text.encode())
