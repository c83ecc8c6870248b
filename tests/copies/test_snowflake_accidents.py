"""Deliveries to Snowflake that are killed, lose answers, meet others, and are read meanwhile; on the emulator."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from copies.snowflake_sessions import hook_sessions
from copies.snowflake_subject import SnowflakeSubject, make_account
from errata.engines.copies import snowflake_session
from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.errors import CopyLocked, CopyOvertaken, EngineError, ErrataError, OutcomeUnknown
from errata.model.copy.delivery import Receipt
from errata.model.copy.marker import MarkedAttempt, Marker, MarkerState
from errata.model.copy.table import name_staging
from errata.testing.contracts.copies import (
    DAY1,
    DAY2,
    Row,
    Rows,
    assert_same_rows,
    build_row,
    deliver,
    read_expected,
    stage,
)
from support.answer_proxy import AnswerProxy
from support.fakesnow import FakeSnowflake

BEFORE = [build_row(DAY1, 1), build_row(DAY1, 2), build_row(DAY2, 3)]
AFTER = [build_row(DAY1, 10), build_row(DAY1, 10), build_row(DAY1, 11)]
FIRST, SECOND, THIRD = Marker("bf-1-p1", 1), Marker("bf-2-p1", 1), Marker("bf-2-p1", 2)
SEQUENCES = {DAY1: 9, DAY2: 9}
STATEMENTS = 31
"""Of a delivery, from its staging table to its look at the past; a test checks that it is all of them."""


@pytest.fixture
def subject(fakesnow: FakeSnowflake, snowflake_database: str) -> SnowflakeSubject:
    """A copy with rows of an earlier delivery."""
    made = SnowflakeSubject(fakesnow, snowflake_database)
    deliver(made, FIRST, {DAY1: 4, DAY2: 4}, BEFORE)
    return made


def deliver_with(subject: SnowflakeSubject, copies: SnowflakeCopies, marker: Marker, rows: list[Row]) -> Receipt:
    """A delivery through another engine than the subject's."""
    swap = stage(_with(subject, copies), marker, SEQUENCES, rows)
    copies.open_marker(subject.copy, marker)
    return copies.swap(subject.copy, swap)


def _with(subject: SnowflakeSubject, copies: SnowflakeCopies) -> Any:
    class Subject:
        copy = subject.copy

    Subject.copies = copies  # type: ignore[attr-defined]
    return Subject


def engine(subject: SnowflakeSubject, *, port: int | None = None, **hooks: Callable[[str], None]) -> SnowflakeCopies:
    account = make_account(subject.server, subject.database, port=port)
    return SnowflakeCopies({"snow": account}, hook_sessions(**hooks))


def kill_delivery(subject: SnowflakeSubject, when: str, is_here: Callable[[list[str]], bool]) -> None:
    """A process that is killed before or after the statement at which the list of all so far says so."""
    seen: list[str] = []

    def look(statement: str) -> None:
        seen.append(statement)
        if is_here(seen):
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            deliver_with(subject, engine(subject, **{when: look}), SECOND, AFTER)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the delivery has no such statement"


def recover(subject: SnowflakeSubject) -> None:
    """What the next attempt does: ask the marker, then deliver unless it has landed."""
    copy, copies = subject.copy, subject.copies
    state = copies.fence(copy, SECOND)
    assert state in (MarkerState.DONE, MarkerState.VOID)
    assert_same_rows(subject.rows(), AFTER if state is MarkerState.DONE else BEFORE)
    landed = copies.read_delivered(copy, [DAY1])[DAY1].marker
    assert landed == (SECOND if state is MarkerState.DONE else FIRST)
    if state is MarkerState.VOID:
        deliver_with(subject, copies, THIRD, AFTER)
    for attempt in (SECOND, THIRD):
        copies.drop_staging(copy, name_staging(copy, attempt.publication, attempt.attempt))
    assert_same_rows(subject.rows(), AFTER)
    found = {one.marker: one.state for one in copies.list_markers(copy, "bf-2-p1")}
    wanted = {SECOND: state} | ({THIRD: MarkerState.DONE} if state is MarkerState.VOID else {})
    assert found == wanted
    assert len(copies.list_markers(copy, "bf-2-p1")) == len(wanted)
    assert copies.list_staging(copy, "bf-2-p1") == ()


def count_statements(subject: SnowflakeSubject) -> list[str]:
    """The statements of a delivery."""
    found: list[str] = []
    deliver_with(subject, engine(subject, before=found.append), SECOND, AFTER)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(STATEMENTS))
def test_a_delivery_that_is_killed_anywhere_lands_once_or_not_at_all(
    subject: SnowflakeSubject, number: int, when: str
) -> None:
    """Before and after every statement: rows exactly once, markers exactly once, nothing left behind."""
    kill_delivery(subject, when, lambda seen: len(seen) == number + 1)
    # what Snowflake does some minutes after a client has disappeared
    subject.server.end_transactions()
    recover(subject)


def test_every_statement_of_a_delivery_is_killed_at(subject: SnowflakeSubject) -> None:
    """The number above is the number of statements."""
    assert len(count_statements(subject)) == STATEMENTS


@pytest.mark.parametrize("word,when", [("DELETE", "after"), ("COMMIT", "before"), ("COMMIT", "after")])
def test_a_delivery_that_is_killed_in_its_transaction_lands_once_or_not_at_all(
    subject: SnowflakeSubject, word: str, when: str
) -> None:
    """The three places that matter most, in every run of the tests."""
    # the commit of the swap is the third: loading and the marker have one each
    number = 3 if word == "COMMIT" else 1
    kill_delivery(subject, when, lambda seen: sum(one.startswith(word) for one in seen) == number)
    subject.server.end_transactions()
    is_landed = (word, when) == ("COMMIT", "after")
    assert_same_rows(subject.rows(), AFTER if is_landed else BEFORE)
    recover(subject)


def test_while_the_session_of_a_killed_delivery_lives_nothing_is_concluded(subject: SnowflakeSubject) -> None:
    """Its transaction could still commit: the fence says that it is locked, and writes nothing."""
    kill_delivery(subject, "after", lambda seen: seen[-1].startswith("DELETE"))
    copy, copies = subject.copy, subject.copies
    with pytest.raises(CopyLocked):
        copies.fence(copy, SECOND)
    assert copies.list_markers(copy, "bf-2-p1") == (MarkedAttempt(SECOND, MarkerState.OPEN),)
    assert_same_rows(subject.rows(), BEFORE)
    assert subject.server.end_transactions() == 1
    recover(subject)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connector gives up after seconds, not after a minute."""
    monkeypatch.setattr(snowflake_session, "NETWORK_SECONDS", 3)


# the connector's own thread, which asks for the commit to be cancelled, finds nobody either
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.usefixtures("impatient")
def test_a_lost_answer_to_the_commit_is_unknown_until_the_marker_tells(subject: SnowflakeSubject) -> None:
    """The rows are there, the client does not know, and the next attempt finds it out."""
    swap = stage(subject, SECOND, SEQUENCES, AFTER)
    subject.copies.open_marker(subject.copy, SECOND)
    with AnswerProxy(subject.server.port, "COMMIT", 100) as proxy:
        with pytest.raises(OutcomeUnknown):
            engine(subject, port=proxy.port).swap(subject.copy, swap)
        assert proxy.lost
    assert subject.copies.fence(subject.copy, SECOND) is MarkerState.DONE
    recover(subject)


def test_a_commit_that_the_driver_sends_again_is_one_commit(subject: SnowflakeSubject) -> None:
    """The first answer is lost, the second arrives: the delivery has landed once."""
    swap = stage(subject, SECOND, SEQUENCES, AFTER)
    subject.copies.open_marker(subject.copy, SECOND)
    with AnswerProxy(subject.server.port, "COMMIT", 1) as proxy:
        receipt = engine(subject, port=proxy.port).swap(subject.copy, swap)
        assert proxy.lost == 1
    assert (receipt.rows_removed, receipt.rows_written) == (3, 3)
    recover(subject)


@pytest.mark.parametrize("word", ['DELETE FROM "DAILY"', 'INSERT INTO "DAILY"'])
def test_a_statement_that_the_driver_sends_twice_is_found(subject: SnowflakeSubject, word: str) -> None:
    """A DELETE then reports no rows, an INSERT doubles them: both end in ROLLBACK."""
    swap = stage(subject, SECOND, SEQUENCES, AFTER)
    subject.copies.open_marker(subject.copy, SECOND)
    with AnswerProxy(subject.server.port, word, 1) as proxy:
        with pytest.raises(ErrataError) as refused:
            engine(subject, port=proxy.port).swap(subject.copy, swap)
        assert proxy.lost == 1
    assert refused.value.state == "nothing was written"
    assert_same_rows(subject.rows(), BEFORE)
    recover(subject)


def test_two_deliveries_at_once_are_one_after_the_other(subject: SnowflakeSubject) -> None:
    """One lands; the other is told that it was overtaken or that it had to wait; rows are those of one, once."""
    other = [build_row(DAY1, 20), build_row(DAY2, 21)]
    markers = {SECOND: AFTER, Marker("bf-3-p1", 1): other}
    swaps = {marker: stage(subject, marker, SEQUENCES, rows) for marker, rows in markers.items()}
    for marker in markers:
        subject.copies.open_marker(subject.copy, marker)
    together = threading.Barrier(2, timeout=30)

    def meet(statement: str) -> None:
        # both are in their transactions before one of them changes its marker
        if statement.startswith("UPDATE"):
            together.wait()

    def swap(marker: Marker) -> Receipt | ErrataError:
        try:
            return engine(subject, before=meet).swap(subject.copy, swaps[marker])
        except ErrataError as error:
            return error

    with ThreadPoolExecutor(2) as threads:
        outcomes = dict(zip(swaps, threads.map(swap, swaps), strict=True))
    landed = [marker for marker, outcome in outcomes.items() if isinstance(outcome, Receipt)]
    assert len(landed) == 1
    (loser,) = (outcome for outcome in outcomes.values() if not isinstance(outcome, Receipt))
    assert isinstance(loser, (CopyLocked, CopyOvertaken))
    assert_same_rows(subject.rows(), markers[landed[0]])
    states = [one.state for marker in markers for one in subject.copies.list_markers(subject.copy, marker.publication)]
    assert sorted(states) == [MarkerState.DONE, MarkerState.OPEN]
    # the loser looks again, and comes second
    (late,) = set(markers) - set(landed)
    again = replace(swaps[late], **read_expected(subject, tuple(SEQUENCES)))
    subject.copies.swap(subject.copy, again)
    assert_same_rows(subject.rows(), markers[late])


def test_time_travel_is_asked_for_and_its_absence_is_on_the_receipt(subject: SnowflakeSubject) -> None:
    """The emulator has none: the receipt says what could not be looked at."""
    receipt = deliver_with(subject, subject.copies, SECOND, AFTER)
    assert len(receipt.unchecked) == 1
    assert not receipt.foreign


@pytest.mark.slow
def test_readers_see_all_of_a_delivery_or_nothing(subject: SnowflakeSubject) -> None:
    """A reader that never stops, through eight deliveries."""
    done = threading.Event()
    seen: set[tuple[int, int]] = set()
    wanted = {(len(rows), sum(row["id"] for row in rows)) for rows in (BEFORE, AFTER)}

    def read() -> None:
        with subject.connect() as conn:
            while not done.is_set():
                (row,) = conn.cursor().execute(f'select count(*), sum("id") from {subject.table}').fetchall()
                seen.add((int(row[0]), int(row[1])))

    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read)
        try:
            for number in range(8):
                marker = Marker(f"bf-{number + 5}-p1", 1)
                rows = AFTER if number % 2 == 0 else BEFORE
                swap = stage(subject, marker, {DAY1: number + 10, DAY2: number + 10}, rows)
                subject.copies.open_marker(subject.copy, marker)
                subject.copies.swap(subject.copy, swap)
        finally:
            done.set()
        reading.result(timeout=30)
    assert seen == wanted


def test_a_refused_load_leaves_the_copy_alone(subject: SnowflakeSubject) -> None:
    """A value that the staging table cannot hold is refused with the query, and without the value."""
    wide = [build_row(DAY1, 1, n=2**40)]
    columns = tuple(replace(one, type="long") if one.name == "n" else one for one in subject.copy.columns)
    lake = replace(subject.copy, columns=columns)
    with pytest.raises(EngineError) as refused:
        subject.copies.load(subject.copy, "errata_stage_9", Rows(lake, wide))
    assert str(2**40) not in f"{refused.value} {refused.value.fields}"
    assert_same_rows(subject.rows(), BEFORE)
