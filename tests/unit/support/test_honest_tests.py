"""Tests use what the code offers: they replace nothing inside it and read nothing that it keeps private."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
SOURCE = TESTS.parent / "src/errata"
FILES = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py"))
OTHERS = {"_gateway", "_repr_html_"}
"""Names that only look private: one of PySpark that the code uses as well, and the method that notebooks call."""
ALLOWED = {
    "copies/test_snowflake_accidents.py": {"setattr"},  # left to replace: how long the connector tries
    "unit/engines/copies/test_snowflake_session.py": {"setattr"},  # left to replace: how long a login may take
    "spark/test_live_wins.py": {"setattr"},  # left to replace: the limit of three rebases
    "spark/test_measure.py": {"setattr"},  # left to replace: 20,000 rows in each partition
    "spark/test_rewrite.py": {"_rewriter", "_write"},  # left to replace: no caller gives it rows that change
    "unit/engines/test_files.py": {
        "_list_partitions",
        "_open",
        "_get_filesystem",
    },  # left to replace: the listing of an object store
    "unit/evidence/test_tampering.py": {"setattr"},  # the limits of a file whose bytes must not change
    "security/test_delivered_secrets.py": {"_build"},  # of the world of the tests
    "support/postgres.py": {"_run"},  # the server's own class
}


@cache
def _private_names() -> frozenset[str]:
    """Private names that the code defines: functions, classes, variables and attributes."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return frozenset(name for name in found if name.strip("_") and name[0] == "_" and name[1] != "_") - OTHERS


def _find_reaches(text: str) -> Iterator[str]:
    """What a test reaches into: names that are private, and ``setattr`` where it replaces something of the code."""
    tree = ast.parse(text)
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "errata"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "errata":
            yield from (alias.name for alias in node.names if alias.name in _private_names())
        elif isinstance(node, ast.Attribute) and node.attr in _private_names():
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            target = node.args[0]
            names = {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
            is_ours = names & ours or (isinstance(target, ast.Constant) and str(target.value).startswith("errata."))
            if node.func.attr == "setattr" and is_ours:
                yield "setattr"


@pytest.mark.parametrize("file", FILES)
def test_a_test_replaces_and_reads_nothing_inside_the_code(file: str):
    """What a test needs is passed in, configured, or done from outside; the exceptions are listed with their reason."""
    assert set(_find_reaches((TESTS / file).read_text("utf-8"))) == ALLOWED.get(file, set())


@pytest.mark.parametrize(
    "text",
    [
        "from errata.worker import loop\nmonkeypatch.setattr(loop, '_POLL_SECONDS', 1)",
        "monkeypatch.setattr('errata.worker.loop.MAX_PAUSED_SECONDS', 1)",
        "client._workspace.ledger",
        "from errata.worker.loop import _run_loop",
    ],
)
def test_a_reach_is_found(text: str):
    """Each way to reach into the code is seen."""
    assert list(_find_reaches(text))
