"""Names of the branches and tags that Errata creates on a table, and of its side tables. Pure.

All begin with ``errata_``, carry the run or publication they belong to, and are listed in the plan before they exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from errata.model.manifest import InputPin


PREFIX = "errata_"
GUARD = "errata_guard"
FIRST_PROPERTY = "errata.first"
"""Property of the snapshot without files that Errata commits to main where a table has none, to root branches on it."""
_OF_WRITER = re.compile(r"errata_(bf-\d{8}-.+?-[0-9a-f]{8})(?:$|_(?!in\d*$)|-[pr]\d)", re.ASCII)
_MAX_SHOWN = 3
WRONG_LEDGER = (
    "is ledger in errata.yaml right? If it is, another ledger governs the table too, or this one was restored from a "
    "backup"
)
"""What to ask when a table shows work of runs that the ledger lacks."""

DAY_MS = 86_400_000
FOR_EVER_DAYS = 36_500
RUN_DAYS = 45
"""How long the branch and the pins of a run live."""
STEP_DAYS = 7
"""How long refs live that serve one step: a candidate, a publication's tag, rows written for a publication."""


def find_writer(ref: str) -> str | None:
    """The run that writes to the table with this ref; None for the tag of a run that only reads the table.

    >>> find_writer("errata_bf-20260214-daily-7f3a21c0-p1-3fa9c2_undo")
    'bf-20260214-daily-7f3a21c0'
    >>> find_writer("errata_bf-20260214-daily-7f3a21c0_in2")
    """
    found = _OF_WRITER.match(ref)
    return found[1] if found else None


def describe_unknown_runs(runs: Sequence[str]) -> str:
    """What it means that a table has refs of runs that the ledger does not have.

    >>> describe_unknown_runs(["bf-20260214-daily-7f3a21c0"])[:76]
    'the table has branches or tags of 1 run that this ledger does not have (bf-2'
    """
    listed = ", ".join(runs[:_MAX_SHOWN]) + (" …" if len(runs) > _MAX_SHOWN else "")
    return (
        f"the table has branches or tags of {len(runs):,} run{'s' if len(runs) != 1 else ''} that this ledger does not "
        f"have ({listed}): {WRONG_LEDGER}"
    )


def run_branch(run_id: str) -> str:
    """Branch to which attempts append."""
    return f"{PREFIX}{run_id}"


def candidate_branch(run_id: str, n: int, digest: str) -> str:
    """Branch with the table as it would be after publication; the name includes a digest of its contents.

    >>> candidate_branch("bf-20260214-daily-7f3a21c0", 1, "5d41402abc4b2a76")
    'errata_bf-20260214-daily-7f3a21c0_c1_5d41402a'
    """
    return f"{PREFIX}{run_id}_c{n}_{digest[:8]}"


def base_tag(run_id: str) -> str:
    """Tag on the target's snapshot at planning."""
    return f"{PREFIX}{run_id}_base"


def input_tags(run_id: str, inputs: Iterable[InputPin]) -> dict[tuple[str, str], str]:
    """Tags on the pinned snapshots of input tables: (table, tag) → snapshot. A table's second snapshot is ``_in2``.

    A product's own output needs none: it is read at the target's base, which has a tag.
    """
    found: dict[str, list[str]] = {}
    for pin in inputs:
        if pin.kind == "table" and pin.snapshot_ids and not pin.own:
            snapshots = found.setdefault(pin.location, [])
            snapshots += [one for one in pin.snapshot_ids if one not in snapshots]
    return {
        (table, f"{PREFIX}{run_id}_in{n if n > 1 else ''}"): snapshot
        for table, snapshots in found.items()
        for n, snapshot in enumerate(snapshots, 1)
    }


def undo_branch(publication_id: str) -> str:
    """Branch with exactly the files that a publication removes."""
    return f"{PREFIX}{publication_id}_undo"


def pre_tag(publication_id: str) -> str:
    """Tag on main before a publication."""
    return f"{PREFIX}{publication_id}_pre"


def preview_tag(run_id: str) -> str:
    """Default tag under which readers can query the candidate."""
    return f"{PREFIX}{run_id}_dark"


def before_tag(dark: str) -> str:
    """Tag on the previous state, paired with the candidate's tag."""
    return f"{dark}_before"


def compare_view(table: str, dark: str) -> str:
    """The view next to the target that shows old and new by key.

    >>> compare_view("lake.fin.daily", "errata_bf-20260214-daily-7f3a21c0_dark")
    'lake.fin.errata_compare_bf_20260214_daily_7f3a21c0'
    >>> compare_view("lake.fin.daily", "preview")
    'lake.fin.errata_compare_daily_preview'
    """
    namespace, _, name = table.rpartition(".")
    own = dark.removeprefix(PREFIX).removesuffix("_dark") if dark.startswith(PREFIX) else f"{name}_{dark}"
    return f"{namespace}.{PREFIX}compare_{own.replace('-', '_')}"


def pub_tag(publication_id: str) -> str:
    """Tag on main after a publication; on the guard, it is the fence that keeps a late commit out."""
    return f"{PREFIX}{publication_id}_pub"


def handover_tag(publication_id: str, consumer: str) -> str:
    """Tag on main from which a reader takes the partitions that it does not see otherwise.

    >>> handover_tag("bf-20260214-daily-7f3a21c0-p1-3fa9c2", "fraud")
    'errata_bf-20260214-daily-7f3a21c0-p1-3fa9c2_for_fraud'
    """
    return f"{PREFIX}{publication_id}_for_{consumer}"


def rows_branch(publication_id: str, n: int) -> str:
    """Branch with rows that a rollback had to rewrite, because their old files carry deletes."""
    return f"{PREFIX}{publication_id}_rows{n}"


def rest_branch(publication_id: str, n: int) -> str:
    """Branch with rows carried over because they share files with the scope; ``n`` counts the attempts."""
    return f"{PREFIX}{publication_id}_rest{n}"


def quarantine_table(table: str, run_id: str) -> str:
    """Table next to the target that receives the rows a run quarantines.

    >>> quarantine_table("lake.fin.daily", "bf-20260214-daily-7f3a21c0")
    'lake.fin.errata_quarantine_bf_20260214_daily_7f3a21c0'
    """
    return f"{table.rpartition('.')[0]}.{PREFIX}quarantine_{run_id.replace('-', '_')}"


def emitted_table(table: str, run_id: str) -> str:
    """Table next to the target that keeps the rows a run emits for topics, until they are sent.

    >>> emitted_table("lake.fin.daily", "bf-20260214-daily-7f3a21c0")
    'lake.fin.errata_emitted_bf_20260214_daily_7f3a21c0'
    """
    return f"{table.rpartition('.')[0]}.{PREFIX}emitted_{run_id.replace('-', '_')}"


def shadow_table(table: str, product: str, digest: str) -> str:
    """Table next to the target that receives staged files the target cannot take; one per manifest.

    >>> shadow_table("lake.fin.daily", "daily-revenue", "1a2b3c4d5e")
    'lake.fin.errata_shadow_daily_revenue_1a2b3c4d'
    """
    # names that every catalog accepts: lower case, digits, underscores
    return f"{table.rpartition('.')[0]}.{PREFIX}shadow_{product.replace('-', '_')}_{digest[:8]}"


def swap_table(table: str) -> str:
    """Table next to the target that holds what a view shows instead of the target's partitions.

    >>> swap_table("lake.fin.daily")
    'lake.fin.errata_swap_daily'
    """
    namespace, _, name = table.rpartition(".")
    return f"{namespace}.{PREFIX}swap_{name}"
