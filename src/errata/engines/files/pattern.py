"""File patterns such as ``s3://b/t/business_date={business_date}/*.parquet``. Pure.

``{column}`` is the partition's canonical text; ``{column:%Y/%m/%d/%H}`` formats its first instant. ``*``, ``?`` and
``[…]`` match within one path segment, ``**`` matches any number of segments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape

from errata.errors import UsageError
from errata.model.partition import NULL, Grain, parse_partition, start_of, value_from_text

_PLACEHOLDER = re.compile(r"\{(?P<column>[A-Za-z_]\w*)(?::(?P<format>[^{}]+))?\}")
_SLASH = re.compile(r"/(?![^{}]*\})")  # but not a slash inside a placeholder's format
_DIRECTIVE = re.compile(r"%-?[A-Za-z]")
_DIGITS = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%y": 2}
_GLOB = re.compile(r"[*?\[]")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_DOT_SEGMENTS = {".", ".."}
# the characters that Hive and Spark escape in directory names
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{}\[\]^]")


@dataclass(frozen=True, slots=True)
class FileLocation:
    """Location of one partition's files: a directory, and globs for the paths below it."""

    directory: str
    segments: tuple[str, ...]  # globs, one per path segment below the directory; empty: the path is one file

    @property
    def is_deep(self) -> bool:
        """Whether the directory must be listed recursively."""
        return len(self.segments) > 1 or "**" in self.segments


def split_scheme(pattern: str) -> tuple[str, str]:
    """Split a pattern into scheme (``file`` if there is none) and path, in the form pyarrow's file systems expect.

    >>> split_scheme("s3a://b/t/x"), split_scheme("/data/x"), split_scheme("file:///data/x")
    (('s3', 'b/t/x'), ('file', '/data/x'), ('file', '/data/x'))
    """
    scheme, mark, rest = pattern.partition("://")
    if not mark:
        return "file", pattern
    return ("s3" if scheme in ("s3", "s3a", "s3n") else scheme), rest


def placeholder_column(pattern: str) -> str | None:
    """The column named by a pattern's placeholders; None if it has no placeholder."""
    names = {found["column"] for found in _PLACEHOLDER.finditer(pattern)}
    if len(names) > 1:
        raise UsageError(f"pattern {pattern!r} names {', '.join(sorted(names))}; expected one partition column")
    return next(iter(names), None)


def locate_partition(path: str, grain: Grain, partition: str | None) -> FileLocation:
    """The location of one partition; ``partition`` is None for a pattern without placeholders, which is read whole."""
    fixed: list[str] = []
    globs: list[str] = []
    for segment in _SLASH.split(path):
        is_glob = bool(globs) or bool(_GLOB.search(_PLACEHOLDER.sub("", segment)))
        filled = _fill_placeholders(segment, grain, partition, is_glob=is_glob)
        (globs if is_glob else fixed).extend(filled.split("/"))
    return FileLocation("/".join(fixed), tuple(globs))


def locate_marker(place: FileLocation, grain: Grain, partition: str, marker: str) -> str:
    """The path of a partition's marker: a file in the directory of its files, which may have subdirectories.

    >>> locate_marker(FileLocation("raw/2026-01-01", ("*.parquet",)), Grain.DAY, "2026-01-01", "_SUCCESS")
    'raw/2026-01-01/_SUCCESS'
    >>> locate_marker(FileLocation("raw/2026-01-01.parquet", ()), Grain.DAY, "2026-01-01", "{day}.done")
    'raw/2026-01-01.done'
    """
    directory = place.directory if place.segments else place.directory.rpartition("/")[0]
    return f"{directory}/{_fill_placeholders(marker, grain, partition, is_glob=False)}"


def pattern_root(path: str) -> str:
    """The directory above everything that differs between partitions."""
    fixed: list[str] = []
    for segment in path.split("/"):
        if "{" in segment or _GLOB.search(segment):
            break
        fixed.append(segment)
    return "/".join(fixed)


def partitions_from_names(path: str, grain: Grain, names: Iterable[str]) -> tuple[str, ...]:
    """Partitions named by directories under :func:`pattern_root`; none if the names do not determine them."""
    root = pattern_root(path)
    segment = _SLASH.split(path.removeprefix(root).removeprefix("/"))[0]
    before, hole, after = segment.partition(next((found[0] for found in _PLACEHOLDER.finditer(segment)), "\0"))
    if not hole or ":" in hole or _GLOB.search(before + after) or not grain.is_time:
        return ()
    cut = [
        name[len(before) : len(name) - len(after)] for name in names if name.startswith(before) and name.endswith(after)
    ]
    return tuple(text for text in cut if _is_partition(grain, text))


def _is_partition(grain: Grain, text: str) -> bool:
    try:
        return parse_partition(grain, text) == text
    except UsageError:
        return False


def matches(place: FileLocation, path: str) -> bool:
    """Whether a path is one of the location's files; names beginning with ``_`` or ``.`` are never data."""
    if path.rpartition("/")[2].startswith(("_", ".")):
        return False
    if not place.segments:
        return path == place.directory or path.rpartition("/")[0] == place.directory
    prefix = place.directory + "/"
    return path.startswith(prefix) and _matches_globs(place.segments, path.removeprefix(prefix).split("/"))


def _matches_globs(globs: Sequence[str], names: Sequence[str]) -> bool:
    if not globs:
        return not names
    if globs[0] == "**":
        return any(_matches_globs(globs[1:], names[n:]) for n in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], globs[0]) and _matches_globs(globs[1:], names[1:])


def is_glob(text: str) -> bool:
    """Whether a segment, or any segment of a pattern, matches more than one name in one partition."""
    return bool(_GLOB.search(_PLACEHOLDER.sub("", text)))


def open_placeholders(path: str) -> tuple[str, ...]:
    """The segments of a pattern with globs in place of the partition.

    >>> open_placeholders("raw/day={day}/*.parquet"), open_placeholders("raw/{day:%m/%j}/x")
    (('raw', 'day=*', '*.parquet'), ('raw', '[0-9][0-9]', '*', 'x'))
    """

    def glob(found: re.Match[str]) -> str:
        return _DIRECTIVE.sub(lambda part: "[0-9]" * _DIGITS.get(part[0], 0) or "*", found["format"] or "%x")

    return tuple(_PLACEHOLDER.sub(glob, path).split("/"))


def _fill_placeholders(segment: str, grain: Grain, partition: str | None, *, is_glob: bool) -> str:
    def value(found: re.Match[str]) -> str:
        if partition is None:
            raise UsageError(f"pattern segment {segment!r} has a placeholder, but the input has no partition column")
        text = _format_partition(grain, partition, found["format"])
        return escape(text) if is_glob else text

    filled = _PLACEHOLDER.sub(value, segment)
    if filled != segment and _DOT_SEGMENTS & set(filled.split("/")):
        raise UsageError(f"partition {partition!r} was refused; in {segment!r} it would lead to another directory")
    return filled


def _format_partition(grain: Grain, partition: str, form: str | None) -> str:
    if partition == NULL:
        return _HIVE_NULL
    if grain.is_time:
        return start_of(grain, partition).strftime(form) if form else partition
    if form:
        raise UsageError(f"format {form!r} was refused; partitions by value are not times")
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value_from_text(partition) or "")
