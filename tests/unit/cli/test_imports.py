"""Which packages a command may load: one that it does not use makes every look slower, and nobody notices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from errata.cli.main import run_program

ROOT = Path(__file__).parents[3]
HEAVY = frozenset(
    {
        "alembic", "cryptography", "py4j", "pyarrow", "pydantic", "pyiceberg", "pyspark", "requests",
        "securesystemslib", "sqlalchemy", "sqlglot",
    }
)  # fmt: skip
CONSOLE = "rich.console"
LEDGER = frozenset({"sqlalchemy"})
PROJECT = frozenset({"pydantic"})
TABLES = frozenset({"pyarrow", "pyiceberg"})
PROGRAM = """
import json, sys
from errata.cli.main import main
code = main(sys.argv[1:])
with open("loaded.json", "w") as file:
    json.dump([code, sorted(sys.modules)], file)
"""


class Starter(NamedTuple):
    """A project with one planned run."""

    root: Path
    run: str
    digest: str


def _load(root: Path, *words: str) -> tuple[set[str], str]:
    """The modules that a command loaded, and what it printed."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=120)
    code, modules = json.loads((root / "loaded.json").read_text())
    assert code == 0, done.stderr
    return set(modules), done.stdout


def _heavy(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & HEAVY


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Starter:
    """The project of ``errata init`` with its lake and a plan."""
    root = tmp_path_factory.mktemp("starter")
    _load(root, "init", "shop")
    root /= "shop"
    subprocess.run([sys.executable, "make_lake.py"], cwd=root, capture_output=True, check=True, timeout=120)
    _, answer = _load(
        root, "plan", "shop.daily_sales", "--from", "2026-01-03", "--to", "2026-01-05", "--reason", "test", "--json"
    )
    plan = json.loads(answer)
    return Starter(root, plan["run_id"], plan["manifest_digest"])


def test_help_loads_no_engine_no_ledger_and_no_project(starter: Starter) -> None:
    """The words are in the commands."""
    modules, _ = _load(starter.root, "--help")
    assert _heavy(modules) == set()
    assert CONSOLE not in modules
    assert not {
        name for name in modules if name.startswith(("errata.ledger", "errata.model.manifest", "errata.model.product"))
    }


@pytest.mark.parametrize(
    "command, allowed",
    [
        pytest.param("runs", LEDGER | PROJECT, marks=pytest.mark.slow),
        ("show RUN", LEDGER | PROJECT),
        pytest.param("audit log", LEDGER | PROJECT, marks=pytest.mark.slow),
        ("status RUN", LEDGER | PROJECT | TABLES),
        ("approve RUN --digest DIGEST", LEDGER | PROJECT | TABLES),
        pytest.param("history lake.shop.daily_sales 2026-01-03", LEDGER | PROJECT | TABLES, marks=pytest.mark.slow),
        ("impact shop.daily_sales --partitions 2026-01-03", LEDGER | PROJECT | TABLES),
        ("why lake.shop.daily_sales 2026-01-03", LEDGER | PROJECT | TABLES),
    ],
)
def test_a_look_loads_only_what_it_looks_at(starter: Starter, command: str, allowed: frozenset[str]) -> None:
    """The ledger needs SQLAlchemy, the project files pydantic, tables pyiceberg; nothing here needs more."""
    words = command.replace("RUN", starter.run).replace("DIGEST", starter.digest).split()
    modules, _ = _load(starter.root, *words)
    assert _heavy(modules) <= allowed


@pytest.mark.parametrize("command", ["check", "plan shop.daily_sales --partitions 2026-01-07 --reason test --dry-run"])
def test_a_command_without_rows_loads_no_spark(starter: Starter, command: str) -> None:
    """Rules are parsed and tables are described, but nothing is computed and nothing is signed."""
    modules, _ = _load(starter.root, *command.split())
    assert not _heavy(modules) & {"alembic", "cryptography", "py4j", "pyspark", "securesystemslib"}


def test_a_status_loads_no_step_of_a_correction(starter: Starter) -> None:
    """Planning, the gate's rules, the worker and publication are loaded by the commands that run them."""
    modules, _ = _load(starter.root, "status")
    assert _heavy(modules) <= LEDGER | PROJECT
    steps = (
        "errata.commands.publish.",
        "errata.planning.build",
        "errata.gate.rules",
        "errata.worker.loop",
        "errata.engines.",
        "errata.views.campaign",
        "errata.model.graph.dbt_graph",
    )
    assert not {name for name in modules if name.startswith(steps)}


@pytest.mark.parametrize("command", ["status", "show RUN"])
def test_json_is_written_without_a_console(starter: Starter, command: str) -> None:
    """Colours and wrapping are for people."""
    modules, answer = _load(starter.root, *command.replace("RUN", starter.run).split(), "--json")
    assert starter.run in answer
    assert CONSOLE not in modules


def test_the_process_of_a_command_ends_without_a_search_for_garbage() -> None:
    """The objects of a command are set aside before Python ends, both as ``errata`` and as ``python -m errata``."""
    program = """
import gc, runpy, sys
sys.argv = ["errata", "--version"]
try:
    runpy.run_module("errata", run_name="__main__")
except SystemExit as end:
    print(end.code, gc.get_freeze_count() > 10_000)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "0 True"
    assert f'errata = "errata.cli.main:{run_program.__name__}"' in (ROOT / "pyproject.toml").read_text("utf-8")
