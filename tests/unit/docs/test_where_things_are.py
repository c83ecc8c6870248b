"""The map of the code is true, and the code keeps the shape that the map promises."""

from __future__ import annotations

import doctest
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "errata"
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
LISTED = re.findall(r"`([a-z_/]+\.py)`", (ROOT / "docs/concepts/where-things-are.md").read_text(encoding="utf-8"))
MOST_MODULES = 24
SAME_CONCEPT = {
    "acknowledge", "adopt", "approval", "approve", "audit",
    "baseline",
    "calendar", "campaign", "campaigns", "change_logs", "check", "checkpoints", "checks", "chunks", "class_archive",
    "cleanup", "clusters",
    "completeness", "consumers", "control", "copies",
    "datasets", "declaration", "deliver", "diff", "differ", "distribution", "doctor",
    "emr", "eras", "erase", "erasure", "evidence",
    "history", "holds",
    "impact", "import_",
    "jars",
    "lake_rows", "late", "ledger", "lineage", "linked_tables", "live", "live_writes",
    "measure", "metrics",
    "note",
    "origins",
    "outbox",
    "people", "plan", "preview", "product", "progress", "project", "publish",
    "quarantine",
    "readiness", "ready", "ready_table", "rebase", "reconcile", "record", "recordings", "refs", "release", "repair",
    "reconstruction", "report", "restore", "rollback",
    "row_accounts", "row_rules", "rows", "rule_check", "rules", "run", "runbook", "runs",
    "secrets", "settings", "show", "side_tables", "sinks", "spark", "staging", "stale", "standing", "status",
    "submission", "submissions",
    "table", "tables", "throttle", "transforms", "try_",
    "validate",
    "watch", "watermarks", "waves", "why",
}  # fmt: skip
"""Names that stand for the same thing wherever they are."""


@pytest.mark.parametrize("module", LISTED)
def test_a_listed_module_is_there(module: str) -> None:
    """Each behaviour is where the map says."""
    assert (SOURCE / module).is_file()


def test_forty_behaviours_are_listed() -> None:
    """Enough to find one's way by."""
    assert len(LISTED) >= 40


def test_no_folder_has_more_modules_than_a_reader_can_scan() -> None:
    """At most twenty-four."""
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_a_module_name_is_used_twice_for_the_same_concept_only() -> None:
    """A new double needs another name, or a place in the list."""
    names = Counter(path.stem for path in MODULES if not path.stem.startswith("_"))
    assert {name for name, times in names.items() if times > 1} - SAME_CONCEPT == set()


@pytest.mark.parametrize(
    "module",
    [str(path.with_suffix("")).replace("/", ".") for path in MODULES if ">>>" in (SOURCE / path).read_text("utf-8")],
)
def test_examples_in_docstrings_are_true(module: str) -> None:
    """Every example is run."""
    name = f"errata.{module}".removesuffix(".__init__")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
