"""The table of kinds of runs says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from errata.model.kind import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "kinds-of-runs.md"


def test_every_kind_is_in_the_table_with_its_mode_and_what_it_may_change() -> None:
    """One row per kind; the last two columns are those of the declaration."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text("utf-8").splitlines()]
    found = {row[0].strip("`"): row[3:] for row in rows if len(row) == 5 and re.fullmatch(r"`\w+`", row[0])}
    assert found == {
        name: [f"`{kind.mode}`" if kind.runs_transform else "none", "yes" if kind.changes_table else "never"]
        for name, kind in KINDS.items()
    }


def test_kinds_that_are_other_names_for_restate_differ_in_nothing() -> None:
    """What the page calls another name is the same declaration."""
    names = re.findall(r"^\| `(\w+)` \|.*another name for `restate`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert names == ["backfill", "reprocess", "repair"]
    assert {KINDS[name] for name in names} == {KINDS["restate"]}
