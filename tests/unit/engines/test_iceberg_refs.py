"""Retention counts from the snapshot; what got no clear answer is done again, and nothing else is."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from errata.engines.iceberg.commits.refs import compute_ref_age, retry_commit
from errata.errors import EngineError
from errata.model.refs import DAY_MS


def test_a_ref_on_an_old_snapshot_lives_as_long_as_was_promised() -> None:
    """The age that is set is the wanted time plus the age of the snapshot."""
    made = int(time.time() * 1000) - 100 * DAY_MS
    snapshot = SimpleNamespace(timestampMillis=lambda: made)
    table = SimpleNamespace(snapshot=lambda _id: snapshot)
    assert 130 * DAY_MS <= compute_ref_age(table, "1", 30) < 131 * DAY_MS


class Act:
    """Fails so often with this error, and then answers."""

    def __init__(self, error: str, times: int) -> None:
        self.left = [RuntimeError(error)] * times
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.left:
            raise self.left.pop()
        return "done"


@pytest.mark.parametrize("error", ["CommitFailedException: lost", "CommitStateUnknownException: 504", "SQLITE_BUSY"])
def test_an_act_is_repeated_until_the_catalog_answers_clearly(error: str) -> None:
    """After a lost race, and after an answer that says nothing; each time it looks for its own effect first."""
    act = Act(error, 2)
    assert retry_commit(act) == "done"
    assert act.calls == 3


def test_what_is_no_question_of_trying_again_is_raised_at_once() -> None:
    """A second try of it would fail as well."""
    act = Act("ValidationException: no such file", 1)
    with pytest.raises(RuntimeError, match="no such file"):
        retry_commit(act)
    assert act.calls == 1


def test_a_catalog_that_never_answers_clearly_is_an_error_that_says_so() -> None:
    """Not an endless wait."""
    act = Act("CommitStateUnknownException: 504", 9)
    with pytest.raises(EngineError, match="no clear answer in 2 tries"):
        retry_commit(act, attempts=2)
    assert act.calls == 2
