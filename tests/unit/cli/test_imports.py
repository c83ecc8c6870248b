"""Which packages a command may load: one that it does not use makes every look slower, and nobody notices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from errata.cli.main import run_program
from errata.project.starter import write_starter

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
import contextlib, io, json, sys
from errata.cli.main import main
looks = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(words)
    looks.append([code, sorted(sys.modules), said.getvalue()])
print(json.dumps(looks))
"""


class Starter(NamedTuple):
    """A project with one planned run."""

    root: Path
    run: str
    digest: str


class Look(NamedTuple):
    """The modules that are loaded once a command has ended, and what it printed."""

    modules: set[str]
    answer: str


def _load(root: Path, *commands: str) -> list[Look]:
    """Run commands one after the other in one fresh process: each may add to what those before it have loaded."""
    words = json.dumps([command.split() for command in commands])
    command = [sys.executable, "-c", PROGRAM, words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=120)
    looks = json.loads(done.stdout)
    assert [code for code, _, _ in looks] == [0] * len(commands), done.stderr
    return [Look(set(modules), answer) for _, modules, answer in looks]


def _heavy(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & HEAVY


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Starter:
    """The project of ``errata init`` with its lake and a plan."""
    root = tmp_path_factory.mktemp("starter") / "shop"
    root.mkdir()
    write_starter(root)
    subprocess.run([sys.executable, "make_lake.py"], cwd=root, capture_output=True, check=True, timeout=120)
    ((_, answer),) = _load(root, "plan shop.daily_sales --from 2026-01-03 --to 2026-01-05 --reason test --json")
    plan = json.loads(answer)
    return Starter(root, plan["run_id"], plan["manifest_digest"])


def test_help_loads_no_engine_no_ledger_and_no_project(starter: Starter) -> None:
    """The words are in the commands."""
    ((modules, _),) = _load(starter.root, "--help")
    assert _heavy(modules) == set()
    assert CONSOLE not in modules
    assert not {
        name for name in modules if name.startswith(("errata.ledger", "errata.model.manifest", "errata.model.product"))
    }


def test_a_status_loads_no_step_of_a_correction(starter: Starter) -> None:
    """Planning, the gate's rules, the worker and publication are loaded by the commands that run them."""
    as_json, as_text = _load(starter.root, "status --json", "status")
    steps = (
        "errata.commands.publish.",
        "errata.planning.build",
        "errata.gate.rules",
        "errata.worker.loop",
        "errata.engines.",
        "errata.views.campaign",
        "errata.model.graph.dbt_graph",
    )
    assert _heavy(as_text.modules) <= LEDGER | PROJECT
    assert not {name for name in as_text.modules if name.startswith(steps)}
    assert starter.run in as_json.answer
    assert CONSOLE not in as_json.modules, "colours and wrapping are for people"


def test_a_look_loads_only_what_it_looks_at(starter: Starter) -> None:
    """The ledger needs SQLAlchemy, the project files pydantic, tables pyiceberg; nothing here needs more."""
    looks = {
        f"show {starter.run} --json": LEDGER | PROJECT,
        f"show {starter.run}": LEDGER | PROJECT,
        "runs": LEDGER | PROJECT,
        "audit log": LEDGER | PROJECT,
        f"status {starter.run}": LEDGER | PROJECT | TABLES,
        f"approve {starter.run} --digest {starter.digest}": LEDGER | PROJECT | TABLES,
        "history lake.shop.daily_sales 2026-01-03": LEDGER | PROJECT | TABLES,
        "impact shop.daily_sales --partitions 2026-01-03": LEDGER | PROJECT | TABLES,
        "why lake.shop.daily_sales 2026-01-03": LEDGER | PROJECT | TABLES,
    }
    found = _load(starter.root, *looks)
    assert starter.run in found[0].answer
    assert CONSOLE not in found[0].modules
    for (command, allowed), (modules, _) in zip(looks.items(), found, strict=True):
        assert _heavy(modules) <= allowed, command


def test_a_command_without_rows_loads_no_spark(starter: Starter) -> None:
    """Rules are parsed and tables are described, but nothing is computed and nothing is signed."""
    commands = ["check", "plan shop.daily_sales --partitions 2026-01-07 --reason test --dry-run"]
    for command, (modules, _) in zip(commands, _load(starter.root, *commands), strict=True):
        assert not _heavy(modules) & {"alembic", "cryptography", "py4j", "pyspark", "securesystemslib"}, command


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
