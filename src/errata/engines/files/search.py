"""Find out whether any file matches a pattern, in any partition, and if not, how far the search came. Pure.

The caller lists directories. Directories are listed one by one and the search ends at the first match, so that a
pattern that is right costs a few listings, however many partitions there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol

from errata.engines.files.pattern import FileLocation, is_glob, matches, open_placeholders
from errata.model.near_miss import NearMiss

_MAX_LISTINGS = 500
"""A search that came this far without a match is given up as not proven."""


class ListDirectory(Protocol):
    """Lists a directory of some store."""

    def __call__(self, place: str, *, is_deep: bool) -> Mapping[str, bool] | None:
        """Names in it (of all levels, if deep), each with whether it is a file; None if there is no such directory."""


def find_near_miss(pattern: str, path: str, list_directory: ListDirectory) -> NearMiss | None:
    """None if a file matches ``path`` or the search was too long; otherwise where it ended."""
    # without globs of its own, a pattern is a file or a directory with files
    search = _Search(list_directory, may_end_in_directory=not is_glob(path))
    if search.finds("", open_placeholders(path)) or search.listings >= _MAX_LISTINGS:
        return None
    return NearMiss(
        pattern, search.nearest or "/", tuple(sorted(name for name in search.entries if not name.startswith(".")))
    )


@dataclass(slots=True)
class _Search:
    list_directory: ListDirectory
    may_end_in_directory: bool
    listings: int = 0
    nearest: str = ""
    entries: Sequence[str] = ()
    seen: dict[str, Mapping[str, bool] | None] = field(default_factory=dict)

    def finds(self, directory: str, segments: Sequence[str]) -> bool:
        """Whether a file below the directory matches the segments."""
        fixed = next((n for n, segment in enumerate(segments) if is_glob(segment)), len(segments))
        place = "/".join((*([directory] if directory else ()), *segments[:fixed]))
        globs = segments[fixed:]
        if not globs:
            return self._is_file(place) or self._holds_data(place)
        listed = self._list(place)
        if listed is None:
            self._climb(place)
            return False
        if "**" in globs:
            deep = self.list_directory(place, is_deep=True) or {}
            location = FileLocation(place, tuple(globs))
            return any(is_file and matches(location, f"{place}/{name}") for name, is_file in deep.items())
        is_last = len(globs) == 1
        for name, is_file in sorted(listed.items()):
            if self.listings >= _MAX_LISTINGS:
                return False
            if not fnmatchcase(name, globs[0]) or name.startswith(("_", ".")):
                continue
            if is_file and is_last:
                return True
            may_descend = not is_file and (not is_last or self.may_end_in_directory)
            if may_descend and self.finds(f"{place}/{name}", globs[1:]):
                return True
        return False

    def _is_file(self, place: str) -> bool:
        parent, _, name = place.rpartition("/")
        return bool((self._list(parent) or {}).get(name))

    def _holds_data(self, place: str) -> bool:
        listed = self._list(place)
        if listed is None:
            self._climb(place)
            return False
        return any(is_file and not name.startswith(("_", ".")) for name, is_file in listed.items())

    def _climb(self, place: str) -> None:
        while place and self._list(place) is None:
            place = place.rpartition("/")[0]

    def _list(self, place: str) -> Mapping[str, bool] | None:
        """List a directory once, and remember the deepest that exists."""
        if place not in self.seen:
            self.listings += 1
            self.seen[place] = self.list_directory(place, is_deep=False)
        listed = self.seen[place]
        if listed is not None and (not self.nearest or place.count("/") > self.nearest.count("/")):
            self.nearest, self.entries = place, tuple(listed)
        return listed
