"""Named points where a test may stop, kill or delay the process; when off, each costs one look at an empty dict.

Set ``ERRATA_FAILPOINTS="publish.before_commit=kill"`` in the environment, or use :func:`arm` in the same process.
Actions: ``kill`` (SIGKILL to this process), ``raise``, ``pause:<path>`` (creates the file and waits until it is
deleted, at most 60 s), each optionally with ``@n`` for the n-th hit only. ``NAMES`` lists every name; an unknown name
is an error, and a test walks the list so that each boundary is exercised.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from errata.errors import EngineError, UsageError

NAMES = (
    "ledger.before_commit",
    "ledger.after_commit",
    "record.after_page",
    "record.after_fetch",
    "import.before_copy",
    "import.after_copy",
    "import.after_record",
    "dataset.before_commit",
    "dataset.after_commit",
    "redact.after_store",
    "redact.after_record",
    "redact.after_remove",
    "plan.before_record",
    "plan.after_record",
    "plan.after_pin",
    "freeze.after_open",
    "run.after_start",
    "run.after_guard",
    "run.after_branch",
    "submit.after_intent",
    "submit.after_start",
    "submit.after_record",
    "submit.after_stop",
    "chunk.after_claim",
    "stage.before_commit",
    "stage.after_commit",
    "stage.after_adopt",
    "run.before_staged",
    "candidate.after_intent",
    "candidate.after_commit",
    "validate.after_measure",
    "validate.after_verdict",
    "rebase.before_record",
    "rebase.after_record",
    "rebase.after_pin",
    "erasure.before_requeue",
    "erasure.after_requeue",
    "alarm.before_ring",
    "publish.after_release",
    "hold.after_open",
    "ready.before_commit",
    "ready.after_commit",
    "publish.after_intent",
    "publish.after_carry",
    "publish.after_undo",
    "publish.before_commit",
    "publish.after_commit",
    "publish.after_record",
    "waves.after_verdict",
    "waves.between",
    "campaign.before_record",
    "campaign.before_seal",
    "campaign.after_seal",
    "campaign.after_member",
    "campaign.after_undo_begun",
    "campaign.before_undo",
    "dark.after_intent",
    "dark.after_tag",
    "dark.after_view",
    "settle.after_fence",
    "rollback.after_intent",
    "rollback.after_carry",
    "rollback.after_undo",
    "rollback.before_commit",
    "rollback.after_commit",
    "rollback.after_record",
    "deliver.after_claim",
    "deliver.before_pay",
    "deliver.after_pay",
    "deliver.after_record",
    "corrections.before_commit",
    "topic.after_chunk",
    "lineage.after_send",
    "copy.after_load",
    "copy.after_open",
    "copy.after_lock",
    "copy.after_compare",
    "copy.before_commit",
    "copy.after_commit",
    "copy.after_swap",
    "cleanup.after_remove",
    "cleanup.after_expire",
    "audit.before_head",
    "erase.before_add",
    "evidence.before_write",
)

_PAUSE_LIMIT_SECONDS = 60.0
_armed: dict[str, Callable[[], None]] = {}


def failpoint(name: str) -> None:
    """Run the action armed at this point, if any."""
    if _armed and (action := _armed.get(name)):
        action()


@contextmanager
def arm(name: str, action: Callable[[], None]) -> Iterator[None]:
    """Run ``action`` whenever this process passes the point inside the block."""
    _require_known(name)
    _armed[name] = action
    try:
        yield
    finally:
        del _armed[name]


def _require_known(name: str) -> None:
    if name not in NAMES:
        raise UsageError(f"failpoint {name!r} is not known; expected one of {', '.join(NAMES)}")


def _parse_action(text: str) -> Callable[[], None]:
    verb, _, nth = text.partition("@")
    wanted, seen, lock = int(nth or 0), [0], threading.Lock()

    def act() -> None:
        with lock:
            seen[0] += 1
            if wanted and seen[0] != wanted:
                return
        if verb == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif verb == "raise":
            raise EngineError("a failpoint raised here")
        elif verb.startswith("pause:"):
            _pause(Path(verb.removeprefix("pause:")))
        else:
            raise UsageError(f"failpoint action {verb!r} is not known; expected kill, raise or pause:<path>")

    return act


def _pause(marker: Path) -> None:
    marker.touch()
    until = time.monotonic() + _PAUSE_LIMIT_SECONDS
    while marker.exists() and time.monotonic() < until:
        time.sleep(0.02)


def arm_from_environment(text: str) -> None:
    """Arm what ``ERRATA_FAILPOINTS`` names: ``name=action`` items, separated by commas."""
    for item in filter(None, text.split(",")):
        name, _, action = item.partition("=")
        _require_known(name)
        _armed[name] = _parse_action(action)


arm_from_environment(os.environ.get("ERRATA_FAILPOINTS", ""))
