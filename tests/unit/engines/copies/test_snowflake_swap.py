"""The statements of a delivery to Snowflake: which they are, in which order, and that any difference ends in ROLLBACK.

These rules hold for every Snowflake; the emulator that other tests run on does not enforce all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from errata.engines.copies.snowflake_session import AnswerLost, StatementRefused
from errata.errors import AttemptLost, CopyChanged, CopyLocked, CopyOvertaken, EngineError, OutcomeUnknown
from errata.model.copy.checksum import Checksum
from errata.model.copy.lake_file import LakeFile
from errata.model.copy.marker import Content, Marker, MarkerState
from unit.engines.copies.scripted_snowflake import (
    COPY,
    DAY1,
    DAY2,
    MARKER,
    NEW,
    OLD,
    ScriptedSnowflake,
    build_swap,
)

GOLDENS = Path(__file__).parent / "goldens"
DML = ("SELECT", "UPDATE", "DELETE", "INSERT", "COPY")
REFUSED = StatementRefused("Snowflake refused a statement with 000100", 100, "01b-x")


class OneBatch:
    """Rows of the lake, none of them in a file that may be loaded as it is."""

    def batches(self, without: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"BUSINESS_DATE": [None] * 5, "AMOUNT": [None] * 5})

    def files(self) -> tuple[LakeFile, ...]:
        return ()

    def measure(self) -> dict[str, Checksum]:
        return {}


def swap(snowflake: ScriptedSnowflake) -> Any:
    return snowflake.copies.swap(COPY, build_swap(snowflake))


WORK: dict[str, Callable[[ScriptedSnowflake], Any]] = {
    "swap": swap,
    "open_marker": lambda one: one.copies.open_marker(COPY, MARKER),
    "fence": lambda one: one.copies.fence(COPY, MARKER),
    "accept": lambda one: one.copies.accept(COPY, MARKER, {DAY1: Content(9, OLD)}),
    "load": lambda one: one.copies.load(COPY, "errata_stage_1", OneBatch()),
}


def script(work: str) -> ScriptedSnowflake:
    return ScriptedSnowflake(marker_rows=1 if work == "open_marker" else 2)


@pytest.mark.parametrize("work", WORK)
def test_the_statements_are_the_reviewed_ones(work: str) -> None:
    """What an account runs is on record, letter by letter, with its parameters."""
    snowflake = script(work)
    WORK[work](snowflake)
    pairs = zip(snowflake.statements, snowflake.parameters, strict=True)
    text = "".join(f"{statement};{f'  -- {list(values)}' if values else ''}\n" for statement, values in pairs)
    text = re.sub(r"file://[^']*/", "file:///…/", text)
    golden = GOLDENS / f"{work}.sql"
    if os.environ.get("ERRATA_GOLDENS") == "write":
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@pytest.mark.parametrize("work", WORK)
def test_a_transaction_has_only_queries_and_dml(work: str) -> None:
    """DDL, a setting of the session or a clone would commit what came before it."""
    snowflake = script(work)
    WORK[work](snowflake)
    words = [statement.split()[0].upper() for statement in snowflake.statements]
    begun, ended = words.index("BEGIN"), words.index("COMMIT")
    assert words.count("BEGIN") == words.count("COMMIT") == 1
    assert set(words[begun + 1 : ended]) <= set(DML)
    # and outside of it nothing is written but what DDL and PUT write
    assert set(words[:begun] + words[ended + 1 :]) <= {"CREATE", "PUT", "SELECT", "DESCRIBE", "SHOW"}


def test_the_order_is_marker_compare_delete_insert_compare_commit() -> None:
    """Whoever changed the marker first has decided; what is deleted was compared; what was inserted is compared."""
    snowflake = ScriptedSnowflake()
    swap(snowflake)
    steps = [_name_step(statement) for statement in snowflake.statements]
    assert steps == [
        "BEGIN", "identity", "marker", "record", "sums", "delete", "insert", "sums", "forget", "remember", "identity",
        "COMMIT", "sums before",
    ]  # fmt: skip


def _name_step(statement: str) -> str:
    names = {
        "SELECT CURRENT_SESSION": "identity",
        "UPDATE": "marker",
        "SELECT PART, SEQ": "record",
        'DELETE FROM "FIN"."PUBLIC"."DAILY"': "delete",
        'INSERT INTO "FIN"."PUBLIC"."DAILY"': "insert",
        'DELETE FROM "FIN"."PUBLIC"."ERRATA_DELIVERED_DAILY"': "forget",
        'INSERT INTO "FIN"."PUBLIC"."ERRATA_DELIVERED_DAILY"': "remember",
        "select part": "sums before" if "BEFORE(STATEMENT => '01b-5')" in statement else "sums",
    }
    return next((name for start, name in names.items() if statement.startswith(start)), statement.split(maxsplit=1)[0])


DIFFERENCES: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "the marker is not open": ({"marker_rows": 1}, AttemptLost),
    "the marker was changed in another session": ({"marker_rows": 0}, EngineError),
    "a marker is there twice": ({"marker_rows": 3}, EngineError),
    "another delivery came first": ({"recorded": []}, CopyOvertaken),
    "rows changed, number not": ({"found": {DAY1: Checksum(3, 30, 32)}}, CopyChanged),
    "rows were added before the comparison": ({"found": {DAY1: Checksum(4, 40, 41)}}, CopyChanged),
    "rows were added before the deletion": ({"deleted": 4}, CopyChanged),
    "rows were removed before the deletion": ({"deleted": 2}, CopyChanged),
    "fewer rows were inserted": ({"inserted": 4}, EngineError),
    "a statement was sent twice": ({"written": {DAY1: Checksum(10, 100, 102)}}, EngineError),
    "other rows were inserted": ({"written": {DAY1: Checksum(5, 50, 52)}}, EngineError),
    "rows were added beside the new ones": ({"written": {DAY1: Checksum(6, 60, 62)}}, EngineError),
    "no transaction was opened": ({"identities": [("s1", None)]}, EngineError),
    "the session is another one": ({"identities": [("s1", "t1"), ("s2", "t1")]}, EngineError),
    "the transaction is another one": ({"identities": [("s1", "t1"), ("s1", "t2")]}, EngineError),
    "the transaction is gone": ({"identities": [("s1", "t1"), ("s1", None)]}, EngineError),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_any_difference_rolls_back(what: str) -> None:
    """Nothing is committed, and the session is closed."""
    settings, error = DIFFERENCES[what]
    wanted = build_swap(ScriptedSnowflake())
    snowflake = ScriptedSnowflake(**settings)
    with pytest.raises(error) as refused:
        snowflake.copies.swap(COPY, wanted)
    assert refused.value.state == "nothing was written"  # type: ignore[attr-defined]
    assert "COMMIT" not in snowflake.statements
    assert snowflake.statements[-1] == "ROLLBACK"
    assert snowflake.is_closed


@pytest.mark.parametrize("failure", [REFUSED, AnswerLost("OperationalError")], ids=["refused", "lost"])
@pytest.mark.parametrize("at", range(11))
def test_a_statement_that_fails_ends_the_transaction(at: int, failure: Exception) -> None:
    """A failed statement leaves a transaction open: to go on would commit a DELETE without its INSERT."""
    wanted = build_swap(ScriptedSnowflake())
    snowflake = ScriptedSnowflake(fail_at=at, failure=failure)
    with pytest.raises(EngineError) as refused:
        snowflake.copies.swap(COPY, wanted)
    assert not isinstance(refused.value, OutcomeUnknown)
    assert refused.value.state == "nothing was written"
    assert snowflake.statements[at + 1 :] == ["ROLLBACK"]
    assert snowflake.is_closed


def test_only_a_lost_answer_to_the_commit_leaves_the_outcome_unknown() -> None:
    """What Snowflake refused to commit is not there; what it did not answer may be."""
    wanted = build_swap(ScriptedSnowflake())
    for failure, kind in ((AnswerLost("OperationalError"), OutcomeUnknown), (REFUSED, EngineError)):
        snowflake = ScriptedSnowflake(fail_at=11, failure=failure)
        with pytest.raises(EngineError) as error:
            snowflake.copies.swap(COPY, wanted)
        assert snowflake.statements[11] == "COMMIT"
        assert type(error.value) is kind
        assert snowflake.is_closed


def test_the_marker_changes_only_in_the_session_and_transaction_that_were_begun() -> None:
    """The statement itself has the condition: a driver that connected again could not change it."""
    for work in ("swap", "fence"):
        snowflake = ScriptedSnowflake()
        WORK[work](snowflake)
        (at,) = (at for at, one in enumerate(snowflake.statements) if one.startswith("UPDATE"))
        assert "CURRENT_SESSION() = ? AND CURRENT_TRANSACTION() = ?" in snowflake.statements[at]
        assert snowflake.parameters[at][-2:] == ("s1", "t1")


def test_a_swap_and_a_fence_change_a_marker_with_the_same_statement() -> None:
    """So that both wait for each other, and exactly one of them finds it open."""
    found = []
    for work in ("swap", "fence"):
        snowflake = ScriptedSnowflake()
        WORK[work](snowflake)
        found += [one for one in snowflake.statements if one.startswith("UPDATE")]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "rows,markers,state",
    [(2, [(7, "void")], MarkerState.VOID), (1, [(7, "done")], MarkerState.DONE), (1, [(7, "void")], MarkerState.VOID)],
)
def test_a_fence_says_what_the_marker_says(rows: int, markers: list[tuple[int, str]], state: MarkerState) -> None:
    """It writes a marker only if there is none."""
    snowflake = ScriptedSnowflake(marker_rows=rows, markers=markers)
    assert snowflake.copies.fence(COPY, MARKER) is state
    assert not any(one.startswith("INSERT") for one in snowflake.statements)


def test_a_fence_that_gets_no_answer_concludes_nothing() -> None:
    """Neither a lock that was waited for too long nor a lost answer says what became of the attempt."""
    locked = StatementRefused("locked", 625, "01b-9", ["1725"])
    for failure, kind in ((locked, CopyLocked), (AnswerLost("OperationalError"), EngineError)):
        snowflake = ScriptedSnowflake(fail_at=4, failure=failure)
        with pytest.raises(kind) as error:
            snowflake.copies.fence(COPY, MARKER)
        assert snowflake.statements[4].startswith("UPDATE")
        assert "COMMIT" not in snowflake.statements
        if kind is CopyLocked:
            assert error.value.fields["blocked_by"] == ["1725"]


def test_rows_of_others_that_were_deleted_unseen_are_named_on_the_receipt() -> None:
    """An update that leaves the number of rows as it was; with the statement to look the rows up by."""
    receipt = swap(ScriptedSnowflake(before_delete={DAY1: Checksum(3, 40, 41)}))
    assert set(receipt.foreign) == {DAY1}
    assert "before query 01b-5" in receipt.foreign[DAY1]
    assert receipt.to_dict()["foreign"] == dict(receipt.foreign)
    assert not swap(ScriptedSnowflake()).foreign


@pytest.mark.parametrize("failure", [REFUSED, AnswerLost("OperationalError")], ids=["refused", "lost"])
def test_what_landed_stays_delivered_when_it_cannot_be_looked_at(failure: Exception) -> None:
    """After the commit nothing is an error; the receipt says what was not checked."""
    receipt = swap(ScriptedSnowflake(fail_at=12, failure=failure))
    assert len(receipt.unchecked) == 1
    assert receipt.to_dict()["unchecked"] == list(receipt.unchecked)
    assert (receipt.rows_removed, receipt.rows_written, receipt.queries) == (3, 5, ("01b-5", "01b-6"))


def test_sessions_are_tagged_before_a_transaction_begins() -> None:
    """The history of the account shows which publication a statement belongs to."""
    snowflake = ScriptedSnowflake()
    swap(snowflake)
    assert snowflake.tags[-1] == {"publication": "bf-1-p1", "attempt": 7}
    assert not any("SESSION SET" in one.upper() for one in snowflake.statements)


def test_a_partition_that_nobody_delivered_has_to_be_empty() -> None:
    """Rows that are there without a record are someone else's."""
    snowflake = ScriptedSnowflake(recorded=[], found={DAY2: OLD}, deleted=0)
    with pytest.raises(CopyChanged) as refused:
        swap(snowflake)
    assert refused.value.fields["partitions"] == [DAY2]


def test_an_attempt_that_is_late_opens_no_marker() -> None:
    """A later attempt has a marker, or this one is over."""
    for markers in ([(8, "open")], [(7, "done")], [(7, "void")]):
        snowflake = ScriptedSnowflake(marker_rows=1, markers=markers)
        with pytest.raises(AttemptLost):
            snowflake.copies.open_marker(COPY, MARKER)
        assert snowflake.statements[-1] == "ROLLBACK"
    again = ScriptedSnowflake(marker_rows=1, markers=[(7, "open")])
    again.copies.open_marker(COPY, MARKER)
    assert not any(one.startswith("INSERT") for one in again.statements)


def test_the_new_rows_are_what_the_lake_has() -> None:
    """The receipt counts what was removed and written."""
    receipt = swap(ScriptedSnowflake())
    assert (receipt.marker, receipt.rows_removed, receipt.rows_written) == (Marker("bf-1-p1", 7), 3, 5)
    assert receipt.partitions[DAY1].checksum == NEW


def test_a_table_that_reads_the_lake_is_refreshed_and_asked_what_it_reads() -> None:
    """By two statements, which no emulator has; the answer is JSON."""
    snowflake = ScriptedSnowflake(metadata='{"metadataLocation":"s3://lake/t/metadata/7.json","status":"success"}')
    assert snowflake.copies.refresh("snow", "FIN.PUBLIC.DAILY") == "s3://lake/t/metadata/7.json"
    assert snowflake.statements == [
        'ALTER ICEBERG TABLE "FIN"."PUBLIC"."DAILY" REFRESH',
        "SELECT SYSTEM$GET_ICEBERG_TABLE_INFORMATION(?)",
    ]
    assert snowflake.parameters[1] == ('"FIN"."PUBLIC"."DAILY"',)
    with pytest.raises(EngineError, match="names no metadata file"):
        ScriptedSnowflake(metadata='{"status":"failed"}').copies.refresh("snow", "DAILY")
