"""The names of the branches and tags that Errata puts on a table. Pure.

All begin with ``errata_``, carry the run or publication they belong to, and are listed in the plan before they exist.
"""

from __future__ import annotations

__all__ = [
    "GUARD",
    "PREFIX",
    "base_pin",
    "candidate_branch",
    "input_pin",
    "pre_tag",
    "pub_tag",
    "rows_branch",
    "run_branch",
    "undo_branch",
]

PREFIX = "errata_"
GUARD = "errata_guard"


def run_branch(run_id: str) -> str:
    """Where attempts append."""
    return f"{PREFIX}{run_id}"


def candidate_branch(run_id: str, n: int) -> str:
    """The table as it would be after publication."""
    return f"{PREFIX}{run_id}_c{n}"


def base_pin(run_id: str) -> str:
    """Tag on the target's snapshot at planning."""
    return f"{PREFIX}{run_id}_base"


def input_pin(run_id: str) -> str:
    """Tag on an input table's pinned snapshot."""
    return f"{PREFIX}{run_id}_in"


def undo_branch(publication_id: str) -> str:
    """Exactly the files that a publication takes out."""
    return f"{PREFIX}{publication_id}_undo"


def pre_tag(publication_id: str) -> str:
    """Main before a publication."""
    return f"{PREFIX}{publication_id}_pre"


def pub_tag(publication_id: str) -> str:
    """Main after a publication; on the guard, it is the fence that keeps a late commit out."""
    return f"{PREFIX}{publication_id}_pub"


def rows_branch(publication_id: str, n: int) -> str:
    """Rows that a rollback had to write anew, because their old files carry deletes."""
    return f"{PREFIX}{publication_id}_rows{n}"
