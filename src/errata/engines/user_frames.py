"""Find the frames of the user's own code in an error: from its traceback, from a Python worker, from Spark's context.

A planned file is named by its path in the project, whose zip has the source that really ran. Errata's own files, those
of installed packages and of Python are left out. Reads source lines, and nothing else.
"""

from __future__ import annotations

import linecache
import re
import sysconfig
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from traceback import walk_tb
from typing import Any

from errata.engines.failures import iterate_exceptions, iterate_java_texts
from errata.model.product import is_sql_file

_ZIPPED = re.compile(r"(?:^|/)code-[0-9a-f]{64}\.zip/(.+)")
_IN_TEXT = re.compile(r'^ *File "(.+?)", line (\d+), in (.+)$', re.MULTILINE)
_LINE_OF_SQL = re.compile(r"\(?\bline (\d+),? pos(?:ition)? \d+\)?")
_PACKAGES = (str(Path(__file__).resolve().parents[1]), sysconfig.get_path("stdlib"), "<")
_INSTALLED = ("/site-packages/", "/dist-packages/", "/pyspark/", "/py4j/", "/pyspark.zip/")
_MOST_FRAMES = 12
_LONGEST_LINE = 160


@dataclass(frozen=True, slots=True)
class UserFrame:
    """One frame: the file as the user knows it, its line, the function, and the text of the line."""

    file: str
    line: int
    function: str
    source: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


def find_user_frames(error: BaseException, code: bytes = b"", call: str = "") -> tuple[UserFrame, ...]:
    """Frames of the user's code, the innermost last: of this process, then of a Python worker, then Spark's context.

    ``code`` is the planned zip. ``call`` is what runs; if that is a SQL file, the line of the query is the frame.
    """
    read = cache(lambda file: _read_zipped(code, file))
    if is_sql_file(call):
        return tuple(_iterate_query_lines(error, call, read))
    found = [*_iterate_traceback(error, read), *_iterate_worker_frames(error, read)]
    found = found or [*_iterate_call_sites(error, read)]
    return tuple(dict.fromkeys(found))[-_MOST_FRAMES:]


def describe_frames(frames: Sequence[UserFrame]) -> str:
    """The frames as further lines of a message; empty without frames."""
    lines = []
    for frame in frames:
        lines.append(f"\n  {frame.place}{f', in {frame.function}' if frame.function else ''}")
        if frame.source:
            lines.append(f"\n      {frame.source[:_LONGEST_LINE]}")
    return "".join(lines)


def to_plain_frames(frames: Sequence[UserFrame]) -> list[dict[str, Any]]:
    """The frames as JSON."""
    return [asdict(frame) for frame in frames]


def remove_position(text: str) -> str:
    """Text without Spark's position in the statement, whose first line is longer than that of the file.

    >>> remove_position("[UNRESOLVED_COLUMN] no column a. SQLSTATE: 42703; line 3 pos 7;")
    '[UNRESOLVED_COLUMN] no column a. SQLSTATE: 42703'
    """
    return _LINE_OF_SQL.sub("", text).rstrip(" ;,")


def name_user_file(path: str) -> str | None:
    """The file as its author knows it; None if it is not the user's.

    >>> name_user_file("/srv/.errata/cache/code-" + "0" * 64 + ".zip/transforms/daily.py")
    'transforms/daily.py'
    """
    if found := _ZIPPED.search(path):
        return found[1]
    if path.startswith(_PACKAGES) or any(part in path for part in _INSTALLED):
        return None
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)


def _read_zipped(code: bytes, file: str) -> Sequence[str]:
    try:
        with zipfile.ZipFile(BytesIO(code)) as archive:
            return archive.read(file).decode("utf-8", "replace").splitlines()
    except (KeyError, zipfile.BadZipFile):
        return ()


def _build_frame(path: str, line: int, function: str, read: Callable[[str], Sequence[str]]) -> UserFrame | None:
    file = name_user_file(path)
    if file is None:
        return None
    lines = read(file)
    source = lines[line - 1] if 0 < line <= len(lines) else linecache.getline(path, line)
    return UserFrame(file, line, "" if function == "<module>" else function, source.strip())


def _iterate_traceback(error: BaseException, read: Callable[[str], Sequence[str]]) -> Iterator[UserFrame]:
    """Frames of the error, or of its nearest cause that has any; of planned files only, if it has such."""
    for one in iterate_exceptions(error):
        places = [(at.f_code.co_filename, line, at.f_code.co_name) for at, line in walk_tb(one.__traceback__)]
        if isinstance(one, SyntaxError) and one.filename and one.lineno:
            places.append((one.filename, one.lineno, ""))
        planned = [place for place in places if _ZIPPED.search(place[0])]
        if found := [frame for place in planned or places if (frame := _build_frame(*place, read))]:
            yield from found
            return


def _iterate_worker_frames(error: BaseException, read: Callable[[str], Sequence[str]]) -> Iterator[UserFrame]:
    """Frames that a Python worker reported, of the first Java text that has any."""
    for text in _iterate_texts(error):
        made = (_build_frame(path, int(line), name, read) for path, line, name in _IN_TEXT.findall(text))
        if found := [frame for frame in made if frame]:
            yield from found
            return


def _iterate_texts(error: BaseException) -> Iterator[str]:
    for one in iterate_exceptions(error):
        yield from iterate_java_texts(one)
        yield str(one)


def _iterate_call_sites(error: BaseException, read: Callable[[str], Sequence[str]]) -> Iterator[UserFrame]:
    """Where a column that failed later was written, as Spark remembers it."""
    for context in _iterate_contexts(error):
        path, _, line = str(getattr(context, "callSite", str)()).rpartition(":") if _is_call(context) else ("", "", "")
        if line.isdigit() and (frame := _build_frame(path, int(line), "", read)):
            yield frame


def _iterate_query_lines(error: BaseException, file: str, read: Callable[[str], Sequence[str]]) -> Iterator[UserFrame]:
    """The line of the query that Spark complains about; a statement has the lines of its file."""
    text = next((found[1] for one in _iterate_texts(error) if (found := _SQL_HEADING.search(one))), None)
    text = text or next((found[1] for one in _iterate_texts(error) if (found := _LINE_OF_SQL.search(one))), None)
    if text is not None:
        lines, line = read(file), int(text)
        yield UserFrame(file, line, "", lines[line - 1].strip() if 0 < line <= len(lines) else "")


_SQL_HEADING = re.compile(r"== SQL \(line (\d+), position \d+\) ==")


def _iterate_contexts(error: BaseException) -> Iterator[Any]:
    for one in iterate_exceptions(error):
        contexts = getattr(one, "getQueryContext", None)
        yield from (contexts() if callable(contexts) else ()) or ()


def _is_call(context: Any) -> bool:
    return str(context.contextType()).endswith("DataFrame")
