"""The page that follows a correction through the code names functions that exist."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/concepts/a-correction-through-the-code.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([a-z_/]+\.py)`\s+`([A-Za-z_.]+)`", PAGE)))
STEPS = re.findall(r"^\| (\d+) \| `([a-z_/]+\.py)` `([A-Za-z_.]+)` \|", PAGE, re.MULTILINE)


def _defined(module: str) -> set[str]:
    """Functions of a module, and methods as ``Class.method``."""
    tree = ast.parse((ROOT / "src/errata" / module).read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("module, function", NAMED)
def test_a_named_function_exists(module: str, function: str) -> None:
    """Each function is in the module that the page names."""
    assert function in _defined(module)


def test_every_step_names_a_function() -> None:
    """Each numbered row of the page names one module and one function, and each table counts from one."""
    numbers = [int(number) for number, _, _ in STEPS]
    assert len(STEPS) == len(re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE))
    assert numbers.count(1) == 5
    assert all(later in (1, before + 1) for before, later in pairwise(numbers))
