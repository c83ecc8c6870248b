"""Where a stream stops, and the copies of its checkpoint that bring it past a publication, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import EngineError
from errata.model.consumer.checkpoint import Checkpoint, Offset, parse_checkpoint, parse_offset
from errata.model.consumer.stream import (
    NoRepair,
    Repair,
    RepairLater,
    fails_when_available_now,
    find_position,
    list_blockers,
    plan_repair,
    prove_repair,
    proves_option,
)
from errata.model.table import MainSnapshot
from support.stream_model import StreamModel, write_checkpoint

T = "lake.fin.sales"
LETTERS = {"a": "append", "e": "append", "o": "overwrite", "d": "delete", "c": "replace", "f": "overwrite"}
Line = tuple[MainSnapshot, ...]


def line_of(letters: str) -> Line:
    """Appends (a: two files, e: none), Errata's publications (o, d), compactions (c), overwrites by others (f)."""
    return tuple(
        MainSnapshot(str(100 + n), LETTERS[one], 2 if one in "ao" else 0, f"p{n}" if one in "od" else "")
        for n, one in enumerate(letters)
    )


OWN = {f"p{n}" for n in range(50)}


def checkpoint_at(*offsets: tuple[str, int], **options: object) -> Checkpoint:
    return parse_checkpoint("cp", write_checkpoint(list(offsets), first="100", **options))  # type: ignore[arg-type]


def plan(checkpoint: Checkpoint, line: Line) -> Repair | RepairLater | NoRepair:
    found = plan_repair(checkpoint, T, line, OWN)
    if isinstance(found, Repair):
        prove_repair(checkpoint, found, "copy", T, line)
    return found


def test_nothing_is_repaired_while_nothing_lies_ahead() -> None:
    """Appends and compactions are read and passed; a publication behind the position no longer matters."""
    assert isinstance(plan(checkpoint_at(("100", 2)), line_of("aca")), NoRepair)
    assert isinstance(plan(checkpoint_at(("102", 2)), line_of("aoa")), NoRepair)


def test_a_reader_that_read_everything_goes_on_at_the_first_append_after_the_publication() -> None:
    """The entry is at position 0 of that append and committed; the start for AvailableNow is the same."""
    found = plan(checkpoint_at(("100", 2)), line_of("aoca"))
    assert isinstance(found, Repair)
    assert found.kind == "jump"
    lines = found.changes["offsets/1"].decode().split("\n")
    assert lines[:2] == ["v1", '{"batchWatermarkMs":0}']
    assert parse_offset(lines[2]) == Offset("103", 0)
    assert found.changes["commits/1"] == b'v1\n{"nextBatchWatermarkMs":0}'
    assert parse_offset(found.changes["sources/0/offsets/0"].decode()) == Offset("103", 0)
    assert [one.snapshot_id for one in found.passed] == ["101"]


def test_appends_before_the_publication_are_read_first() -> None:
    """Spark plans ahead and leaves them unread, so that a batch of their own is begun and not committed."""
    found = plan(checkpoint_at(("100", 1)), line_of("aaoa"))
    assert isinstance(found, Repair)
    assert found.kind == "catch_up"
    assert parse_offset(found.changes["offsets/1"].decode().split("\n")[2]) == Offset("101", 2)
    assert "commits/1" not in found.changes


def test_a_batch_that_was_begun_is_done_as_it_is() -> None:
    """A sink may have taken it already: a changed batch under the same number would be dropped or doubled."""
    found = plan(checkpoint_at(("100", 1), ("100", 2), committed=0), line_of("aaoa"))
    assert isinstance(found, Repair)
    assert found.kind == "finish"
    assert set(found.changes) == {"sources/0/offsets/0"}


def test_without_an_append_after_the_publication_the_repair_waits() -> None:
    """An entry at the publication itself is validated again; an append without files would leave the reader there."""
    assert isinstance(plan(checkpoint_at(("100", 2)), line_of("aoce")), RepairLater)


def test_a_stale_checksum_does_not_go_into_the_copy() -> None:
    """Hadoop refuses to read a file that does not fit the checksum beside it."""
    files = write_checkpoint([("100", 2)], first="100") | {"sources/0/offsets/.0.crc": b"x", "offsets/.0.crc": b"y"}
    checkpoint = parse_checkpoint("cp", files)
    found = plan(checkpoint, line_of("aoa"))
    assert isinstance(found, Repair)
    copied = found.apply(files)
    assert "sources/0/offsets/.0.crc" not in copied
    assert copied["offsets/.0.crc"] == b"y"
    assert checkpoint.files == files


@pytest.mark.parametrize(
    "checkpoint, line, told",
    [
        (checkpoint_at(("100", 2)), line_of("afa"), "Errata did not write it"),
        (checkpoint_at(("100", 2)), line_of("aoafa"), "Errata did not write it"),
        (checkpoint_at(("7", 2)), line_of("aoa"), "expired, main was set back"),
        (checkpoint_at(("101", 2)), line_of("aooa"), "is one that removes rows"),
        (checkpoint_at(), line_of("aoa"), "has not begun a batch"),
        (parse_checkpoint("cp", write_checkpoint([("100", 2)]), is_stateful=True), line_of("aoa"), "keeps state"),
        (checkpoint_at(("100", 2), others=(Offset("100", 1).to_json(),)), line_of("aoa"), "sources 0, 1 all read"),
    ],
)
def test_what_cannot_be_repaired_is_refused_by_name(checkpoint: Checkpoint, line: Line, told: str) -> None:
    """Nothing is guessed: the location and the reason are named."""
    with pytest.raises(EngineError, match=told) as error:
        plan(checkpoint, line)
    assert "checkpoint cp" in error.value.message


@pytest.mark.parametrize("kind, position, told", [("jump", 1, "miss 2 files"), ("catch_up", 0, "read 1 twice")])
def test_a_copy_that_would_miss_or_repeat_rows_is_not_handed_out(kind: str, position: int, told: str) -> None:
    """Whatever made it: the copy is read as Spark reads it, and what lies between is counted."""
    line, checkpoint = line_of("aoa"), checkpoint_at(("100", 1))
    end = Offset("102" if kind == "jump" else "100", position)
    batch = checkpoint.files["offsets/0"].decode().split("\n")[:2]
    wrong = Repair(kind, 1, {"offsets/1": "\n".join([*batch, end.to_json()]).encode()})
    with pytest.raises(EngineError, match=told):
        prove_repair(checkpoint, wrong, "copy", T, line)


def test_other_sources_of_the_query_stay_where_they_are() -> None:
    """A query over a topic and a table is repaired in the table alone."""
    files = write_checkpoint([("100", 2)], others=('{"orders":{"0":12}}', "-"))
    found = plan(parse_checkpoint("cp", files), line_of("aoa"))
    assert isinstance(found, Repair)
    assert found.changes["offsets/1"].decode().split("\n")[3:] == ['{"orders":{"0":12}}', "-"]


def test_the_option_is_proven_by_a_publication_between_two_batches() -> None:
    """A reader that went on past an overwrite has the option; a batch that Errata wrote into a copy proves nothing."""
    line = line_of("aoaa")
    for offsets, proven in (
        ([("100", 2), ("102", 2)], "101"),
        ([("100", 2), ("102", 0), ("102", 2)], ""),
        ([("102", 2), ("103", 2)], ""),
    ):
        checkpoint = checkpoint_at(*offsets)
        assert proves_option(checkpoint, find_position(checkpoint, T, line), line, "overwrite") == proven
        assert proves_option(checkpoint, find_position(checkpoint, T, line), line, "delete") == ""


def test_available_now_fails_on_what_the_query_has_passed_long_ago() -> None:
    """It plans from the first offset on."""
    line = line_of("aoa")
    checkpoint = checkpoint_at(("102", 2))
    found = fails_when_available_now(checkpoint, find_position(checkpoint, T, line), line)
    assert found is not None
    assert found.snapshot_id == "101"


@given(
    st.text("aaaeocd", min_size=1, max_size=10).map(lambda text: f"a{text}a"),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
def test_every_row_is_read_once_whatever_lies_ahead(letters: str, read: int, is_begun: bool, available: bool) -> None:
    """Start after start, on copy after copy, a reader reads each file of every append exactly once."""
    line = line_of(letters)
    files = write_checkpoint([("100", 0), ("100", read)], committed=0 if is_begun else 1, first="100")
    spark = StreamModel(line, available_now=available)
    already = [] if is_begun else [("100", file) for file in range(read)]
    for _ in range(40):
        before = dict(files)
        spark.run(files)
        checkpoint = parse_checkpoint("cp", dict(files))
        found = plan(checkpoint, line)
        if isinstance(found, NoRepair):
            break
        assert isinstance(found, Repair)
        files = found.apply(files)
        assert files != before
    spark.run(files)
    done = parse_checkpoint("cp", files)
    assert list_blockers(line[1:]) == () or fails_when_available_now(done, find_position(done, T, line), line) is None
    wanted = [(one.snapshot_id, file) for one in line if one.operation == "append" for file in range(one.added_files)]
    assert sorted(already + spark.read) == sorted(wanted)
