"""A checkpoint is read as Spark writes it, and whatever is not as expected is named."""

from __future__ import annotations

import pytest

from errata.errors import EngineError
from errata.model.consumer.checkpoint import Offset, parse_checkpoint
from support.stream_model import write_checkpoint

FILES = write_checkpoint([("11", 1), ("12", 2)], committed=0, first="11")


def test_batches_their_commits_and_the_first_offset_are_read() -> None:
    """A batch is done once it is committed; the newest one may be under way."""
    found = parse_checkpoint("cp", FILES)
    assert [(one.n, one.is_committed) for one in found.batches] == [(0, True), (1, False)]
    assert found.first_offsets == {0: Offset("11", 0)}
    assert found.query_id == "query"
    assert found.last is not None
    assert found.last.to_bytes() == FILES["offsets/1"]


def test_hidden_files_of_hadoop_are_no_batches() -> None:
    """Checksums and unfinished files lie beside the entries."""
    files = FILES | {"offsets/.1.crc": b"crc", "offsets/.2.abc.tmp": b"", "commits/.0.crc": b"crc"}
    assert parse_checkpoint("cp", files).batches == parse_checkpoint("cp", FILES).batches


def test_the_digest_changes_with_every_file() -> None:
    """Names and contents count."""
    digests = {
        parse_checkpoint("cp", files).digest
        for files in (FILES, FILES | {"x": b""}, FILES | {"commits/1": b"v1\n{}"}, FILES | {"x": b"1"})
    }
    assert len(digests) == 4


@pytest.mark.parametrize(
    "change, told",
    [
        ({"metadata": None}, "no file metadata"),
        ({"metadata": b"[]"}, "names no query"),
        ({"metadata": b"\xff"}, "not text"),
        ({"offsets/1": b"v2\n{}\n{}"}, "offsets/1 has format 'v2'"),
        ({"offsets/1": b""}, "offsets/1 has format ''"),
        ({"offsets/1": b"v1\n{}"}, "offsets/1 ends before"),
        ({"commits/7": b"v1\n{}"}, "commits/7 is there and offsets/7 is not"),
    ],
)
def test_a_broken_checkpoint_is_named_with_its_file(change: dict[str, bytes | None], told: str) -> None:
    """Every problem is an error of Errata with the location and the file, never a traceback."""
    files = {name: content for name, content in {**FILES, **change}.items() if content is not None}
    with pytest.raises(EngineError, match=told) as error:
        parse_checkpoint("s3://b/cp", files)
    assert "s3://b/cp" in error.value.message
