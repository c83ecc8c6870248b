"""What a transform may ask of its context."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from errata.model.context import Context

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "write-a-transform.md"
METHODS = {"deterministic_id", "with_lineage", "quarantine", "recorded", "cut", "emit"}


def test_the_context_offers_what_the_guide_lists_and_nothing_that_cannot_work():
    """A transform finds every name of the table; there is no side channel that would always be refused."""
    table = GUIDE.read_text("utf-8").partition("## The context")[2].partition("\n## ")[0]
    told = {name for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    public = {one.name for one in fields(Context) if not one.name.startswith("_")}
    callable_names = {name for name in vars(Context) if not name.startswith("_") and name not in public}
    assert callable_names == METHODS
    assert told == public | METHODS
