"""The benchmarks are never part of the tests, so a name that moved would be noticed only when someone measures."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from benchmarks.__main__ import QUESTIONS

HOME = Path(__file__).parents[3] / "benchmarks"
MODULES = sorted(path.stem for path in HOME.glob("*.py") if not path.stem.startswith("__"))


@pytest.mark.parametrize("name", [*MODULES, "__main__"])
def test_a_benchmark_imports_nothing_that_is_not_there(name: str):
    """Also what it imports only once it measures."""
    importlib.import_module(f"benchmarks.{name}")
    for node in ast.walk(ast.parse((HOME / f"{name}.py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for one in node.names:
                importlib.import_module(one.name)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            found = importlib.import_module(node.module or "")
            missing = [one.name for one in node.names if not _has(found.__name__, one.name)]
            assert not missing, f"{node.module} has no {', '.join(missing)}"


def test_every_question_has_its_module():
    """Each is asked by name, in a process of its own."""
    assert set(QUESTIONS) <= set(MODULES)
    assert all(callable(importlib.import_module(f"benchmarks.{name}").main) for name in QUESTIONS)


def _has(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True
