"""How the rows of a delivery reach a warehouse: which data files are loaded as they are, and from where. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from errata.model.copy.lake_file import LakeFile

_LOCAL = re.compile(r"(?:file://)?(/[\w./=+-]+)", re.ASCII)
"""A path on this machine without characters that mean something in a pattern or in a text literal."""
_SPELLINGS = ((re.compile(r"^s3[an]://"), "s3://"), (re.compile(r"^file:/+"), "file:///"))
"""Several spellings of an address that mean the same."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Files that are loaded as they are; rows of all others are written again."""

    staged: tuple[tuple[LakeFile, str], ...] = ()  # with their names below the external stage
    local: tuple[tuple[LakeFile, str], ...] = ()  # with their paths on this machine

    @property
    def files(self) -> tuple[LakeFile, ...]:
        """All of them."""
        return tuple(file for file, _ in (*self.staged, *self.local))

    @property
    def rows(self) -> int:
        """The number of their rows."""
        return sum(file.rows for file in self.files)


def plan_load(files: Sequence[LakeFile], stage_url: str | None) -> LoadPlan:
    """Which files are loaded from the external stage with this address, and which from this machine.

    >>> file = LakeFile("s3a://lake/fin/daily/data/f.parquet", 7, None)
    >>> plan_load([file], "s3://lake/fin/").staged[0][1]
    'daily/data/f.parquet'
    """
    staged: list[tuple[LakeFile, str]] = []
    local: list[tuple[LakeFile, str]] = []
    base = _clean(stage_url).rstrip("/") + "/" if stage_url else None
    for file in files:
        if file.refusal is not None:
            continue
        path = _clean(file.path)
        if base is not None and path.startswith(base):
            staged.append((file, path.removeprefix(base)))
        elif found := _LOCAL.fullmatch(path):
            local.append((file, found[1]))
    return LoadPlan(tuple(staged), tuple(local))


def _clean(path: str) -> str:
    for spelling, usual in _SPELLINGS:
        path = spelling.sub(usual, path)
    return path
