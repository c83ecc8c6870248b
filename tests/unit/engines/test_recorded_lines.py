"""Bad files: each is read in little memory, and every line is a row or has a problem; nothing is guessed."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from errata.engines.files.source import FileSource
from errata.engines.recordings.landing import RecordedFileStore
from errata.engines.recordings.lines import BLOCK, MAX_LINE_BYTES, Line, iterate_lines, unpack_blocks
from errata.engines.recordings.text_rows import CsvReader, iterate_json
from errata.errors import SourceChanged
from errata.model.manifest import SourceFile
from errata.model.recording.declaration import Source
from errata.model.recording.recorded_file import Inspection

JSON, CSV = Source("s", "json"), Source("s", "csv")


def inspect(root: Path, name: str, content: bytes, source: Source = JSON) -> Inspection:
    (root / name).write_bytes(content)
    return RecordedFileStore(str(root), str(root / "recordings")).inspect(name, source)


def read_json(text: bytes) -> list[tuple[int, object]]:
    rows = iterate_json(iterate_lines(iter([text])))
    return [(row.line, row.problem or dict(row.values)) for row in rows]


@pytest.mark.parametrize(
    "text, problem",
    [
        (b"{", "line not JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "line not JSON"),  # files that were put together, each with its mark
        (b'{"a": NaN}', "line not JSON"),
        (b'{"a": 1} {"a": 2}', "line not JSON"),
        (b"[" * 100_000, "line not JSON"),
        (b"[1]", "line not an object"),
        (b'{"a": 1, "a": 2}', "line repeated key"),
        (b'{"a": {"b": 1, "b": 2}}', "line repeated key"),
        (b'{"a": "\\ud800"}', "line not Unicode"),
        (b'{"a": "\xff"}', "line not UTF-8"),
    ],
)
def test_a_line_that_is_no_object_has_a_problem_and_its_neighbours_do_not(text: bytes, problem: str):
    """One bad line costs one row."""
    assert read_json(b'{"a": 1}\n' + text + b'\n{"a": 2}') == [(1, {"a": "1"}), (2, problem), (3, {"a": "2"})]


def test_values_keep_the_digits_of_the_file():
    """Money with more digits than a double has, and numbers inside objects."""
    text = b'{"a": 0.12345678901234567890, "b": 1e2, "c": {"x": [1.10, true, null]}, "d": null, "e": true, "f": ""}'
    ((_, found),) = read_json(text)
    assert found == {
        "a": "0.12345678901234567890", "b": "1e2", "c": '{"x":[1.10,true,null]}', "d": None, "e": "true", "f": "",
    }  # fmt: skip


def test_lines_are_numbered_as_an_editor_does():
    """Behind a byte order mark, with both line ends, with empty lines, without an end of the last line."""
    found = list(iterate_lines(iter([b"\xef\xbb\xbfa\r\n", b"\n\nb", b"b\n", b"c"])))
    assert found == [Line(1, b"a"), Line(4, b"bb"), Line(5, b"c")]


def test_a_line_of_gigabytes_is_one_bad_line_in_little_memory():
    """Of three gigabytes only the beginning is kept, and the line after them is read."""

    block = b"x" * BLOCK

    def blocks() -> Iterator[bytes]:
        yield b'{"a": 1}\n'
        for _ in range(3 * 1024**3 // BLOCK):
            yield block
        yield b'\n{"a": 2}\n'

    tracemalloc.start()
    found = [(row.line, row.problem or dict(row.values)) for row in iterate_json(iterate_lines(blocks()))]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [(1, {"a": "1"}), (2, "line longer than 16 MiB"), (3, {"a": "2"})]
    assert peak < 4 * MAX_LINE_BYTES


def test_a_packed_file_that_grows_without_end_is_rejected_in_little_memory(tmp_path: Path):
    """A gigabyte of zeros in a megabyte: refused by its ratio, before it is unpacked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    content = b"".join(packer.compress(bytes(BLOCK)) for _ in range(300)) + packer.flush()
    tracemalloc.start()
    seen = inspect(tmp_path, "bomb.json.gz", content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.flaw == "it unpacks to more than 200 times its size"
    assert seen.bytes == len(content)
    assert peak < 8 * MAX_LINE_BYTES


@pytest.mark.parametrize(
    "content, flaw",
    [
        (gzip.compress(b'{"a": 1}\n' * 99)[:-4], "it is cut off in the middle of gzip"),
        (b'{"a": 1}\n', "it is not whole gzip"),
        (gzip.compress(b'{"a": 1}\n') + b"junk", "it is not whole gzip"),
    ],
)
def test_gzip_that_is_not_whole_is_rejected(tmp_path: Path, content: bytes, flaw: str):
    """A cut-off file never counts as a short one."""
    assert flaw in str(inspect(tmp_path, "a.json.gz", content).flaw)


def test_several_gzip_members_are_one_file():
    """Log shippers append members; all of them are read."""
    content = gzip.compress(b"a\n") + gzip.compress(b"b\n")
    assert b"".join(unpack_blocks(iter([content[:9], content[9:]]), 100)) == b"a\nb\n"


def test_a_file_beyond_the_limit_of_its_source_is_rejected(tmp_path: Path):
    """Packed or not."""
    small = Source("s", "json", max_bytes=100)
    assert "more than 100 bytes" in str(inspect(tmp_path, "a.json", b'{"a": 1}\n' * 20, small).flaw)
    assert "more than 100 bytes" in str(inspect(tmp_path, "b.json.gz", gzip.compress(b'{"a": 1}\n' * 20), small).flaw)


@pytest.mark.parametrize(
    "header, flaw",
    [
        (b"id,ID", "which no reader tells apart"),
        (b"id,", "no name that can be used"),
        (b"id,__errata_line", "no name that can be used"),
        ("größe".encode("latin-1"), "it is not UTF-8"),
        ("id,x".encode("utf-16"), "it is not UTF-8"),
    ],
)
def test_a_csv_file_without_a_usable_header_is_rejected(tmp_path: Path, header: bytes, flaw: str):
    """Names decide what a column is, so there is no guess."""
    assert flaw in str(inspect(tmp_path, "a.csv", header + b"\n1,2\n", CSV).flaw)


def test_fields_of_csv_are_what_the_quotes_say():
    """A delimiter and a quote inside quotes are text, an empty field is NULL, a line break ends the record."""
    text = b'id,name\n1,"a,""b"""\n2,\n3,"open\nclosed"\n4,x,y\n5,z\n'
    rows = CsvReader(",").iterate(iterate_lines(iter([text])))
    assert [(row.line, row.problem or tuple(row.values.values())) for row in rows] == [
        (2, ("1", 'a,"b"')),
        (3, ("2", None)),
        (4, "line with broken quotes"),
        (5, "line with another number of fields than the header"),
        (6, "line with another number of fields than the header"),
        (7, ("5", "z")),
    ]


def test_a_file_of_bad_lines_only_is_rejected(tmp_path: Path):
    """It is probably of another format; an empty file is no such file."""
    assert inspect(tmp_path, "a.json", b"id,name\n1,a\n").flaw == "no line of 2 is a row of json"
    assert inspect(tmp_path, "b.json", b"").flaw is None


def test_a_file_that_changes_while_it_is_imported_is_not_stored(tmp_path: Path):
    """Its writer was not done: the hash of the copy is not the one that was decided about, and the copy is removed."""
    seen = inspect(tmp_path, "a.json", b'{"a": 1}\n')
    (tmp_path / "a.json").write_bytes(b'{"a": 1}\n{"a": 2}\n')
    store = RecordedFileStore(str(tmp_path), str(tmp_path / "recordings"))
    with pytest.raises(SourceChanged, match="changed while it was imported"):
        store.store(seen, JSON, "s/accepted/x/a.json", with_rows=True)
    assert [path for path in (tmp_path / "recordings").rglob("*") if path.is_file()] == []


def test_a_recorded_file_is_checked_by_its_hash(tmp_path: Path):
    """The size and the time say nothing: one bit that differs is named."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"abc")
    pinned = SourceFile(f"file://{path}", 3, f"sha256:{hashlib.sha256(b'abc').hexdigest()}")
    assert FileSource(str(tmp_path)).verify([pinned]) == []
    path.write_bytes(b"abd")
    (problem,) = FileSource(str(tmp_path)).verify([pinned])
    assert "changed: sha256:" in problem
    path.unlink()
    assert FileSource(str(tmp_path)).verify([pinned]) == [f"file://{path} is missing"]
