"""The table of modes and guarantees in the docs: every cell has its test, and says what that test shows."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/concepts/publication-modes.md"
TESTS = ROOT / "tests/spark/test_mode_guarantees.py"


def table() -> dict[tuple[str, str], str]:
    """Cells by mode and guarantee."""
    section = PAGE.read_text("utf-8").partition("## Which mode gives which guarantee")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    guarantees, body = rows[0][1:], rows[2:]
    return {(row[0].strip("`"), name): cell for row in body for name, cell in zip(guarantees, row[1:], strict=True)}


def covered() -> tuple[set[str], set[str]]:
    """Modes, and the names of tests that run for each of them, without importing Spark."""
    tree = ast.parse(TESTS.read_text("utf-8"))
    modes = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Mode"
        if isinstance(node.args[0], ast.Constant)
    }
    names = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Name) and one.id == "every_mode" for one in node.decorator_list)
    }
    return {str(mode) for mode in modes}, names


def test_every_cell_has_a_test_and_every_test_a_column() -> None:
    """A guarantee without a test is a hope; a mode that the page does not name is a surprise."""
    cells = table()
    modes, names = covered()
    assert {mode for mode, _ in cells} == modes
    assert {f"test_{re.sub(r'[^a-z]+', '_', guarantee)}" for _, guarantee in cells} == names


def test_every_mode_of_a_product_file_is_on_the_page() -> None:
    """The page and the file format name the same modes."""
    from errata.project.schema import schemas

    modes = {mode for mode, _ in table()}
    assert modes == set(json.loads(schemas()["product.schema.json"])["$defs"]["Publish"]["properties"]["mode"]["enum"])


def test_cells_say_what_the_tests_distinguish() -> None:
    """Where a case of a test expects something else, the cell is not a plain yes."""
    text = TESTS.read_text("utf-8")
    cells = table()
    writing = {mode for mode, guarantee in cells if guarantee == "metadata only" and cells[mode, guarantee] == "no"}
    declared = set(re.findall(r'Mode\(\s*"(\w+)"(?:(?!Mode\().)*?writes=True', text, re.DOTALL))
    assert writing == declared
    (failing,) = re.findall(r"if mode.name in \(([^)]*)\):\s+with pytest.raises", text)
    streams = {mode for mode, guarantee in cells if guarantee == "streaming readers" and cells[mode, guarantee] == "no"}
    assert streams == set(re.findall(r'"(\w+)"', failing))
    assert set(cells.values()) == {"yes", "no", "before", "window"}
