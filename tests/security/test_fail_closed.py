"""A dependency fails while something is decided: a sentence, no trace, nothing half done, and it can be repeated."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from security.conftest import Lab, Result, make_project, make_tables
from security.corpus import assert_harmless
from support.statements import watched_statements


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Lab]:
    """A project of its own: these tests break things."""
    root = make_project(tmp_path / "project")
    make_tables(root)
    with Lab.open(root) as lab:
        yield lab


@contextmanager
def failing_statement(number: int) -> Iterator[list[str]]:
    """The n-th statement of the ledger fails as on a bad disk; the list says which it was."""
    seen: list[str] = []
    hit: list[str] = []

    def fail(statement: str) -> None:
        seen.append(statement)
        if len(seen) == number:
            hit.append(statement)
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = 10
            raise error

    with watched_statements(fail):
        yield hit


def refused(result: Result) -> None:
    assert result.code != 0
    assert_harmless(result.out, result.err)
    assert result.err.startswith("error["), result.err


def facts(lab: Lab, run: str) -> tuple[str, int, int]:
    """State, decisions, and audited decisions of a run."""
    ledger = lab.workspace.ledger
    entries = [entry for entry in ledger.audit.entries(run) if entry.body.get("move", {}).get("to") == "approved"]
    return ledger.runs.get(run).state.value, len(ledger.approvals.list(run)), len(entries)


def test_an_approval_is_whole_or_not_at_all_whichever_statement_fails(fresh: Lab):
    """The ledger fails at each of its statements in turn: decision, state and audit are all there or all absent."""
    plan = fresh.plan()
    words = ("approve", plan.id, "--digest", plan.digest)
    failures = 0
    for number in range(1, 200):
        with failing_statement(number) as hit:
            result = fresh.errata(*words, person="bo")
        if not hit:
            break
        failures += 1
        if result.code:
            refused(result)
        assert facts(fresh, plan.id) in (("planned", 0, 0), ("approved", 1, 1)), hit
        assert fresh.client.audit_verify().ok
    assert failures >= 5
    assert fresh.errata(*words, person="bo").code == 0
    assert facts(fresh, plan.id) == ("approved", 1, 1)


def test_a_plan_is_whole_or_not_at_all_whichever_statement_fails(fresh: Lab):
    """A run is recorded with manifest, chunks and audit, or there is no run."""
    ledger = fresh.workspace.ledger
    words = ("plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "doubled")
    for number in range(1, 200):
        with failing_statement(number) as hit:
            result = fresh.errata(*words)
        if not hit:
            break
        if result.code:
            refused(result)
        for run in ledger.runs.list():
            assert ledger.progress.chunks(run.run_id)
            assert ledger.runs.manifest_bytes(run.run_id)
        assert fresh.client.audit_verify().ok
    assert len(ledger.runs.list()) == 1


CAUSES = (
    OSError(28, "No space left on device", "/var/lib/secret-place"),
    ConnectionResetError("peer"),
    TimeoutError(),
    PermissionError(13, "Permission denied", "/srv/keys/credentials"),
    MemoryError(),
    RecursionError("too deep"),
    RuntimeError("boom\x1b[2J\nTraceback (most recent call last):"),
    KeyError("secret"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: type(cause).__name__)
@pytest.mark.parametrize("port", ["targets", "code", "pins"])
def test_nothing_is_planned_on_a_world_that_cannot_be_read(lab: Lab, port: str, cause: Exception):
    """Catalog, code or tags fail with anything: the command says so, and no run comes of it."""
    ledger = lab.workspace.ledger
    before = len(ledger.runs.list())
    words = ("plan", "fin.sales", "--partitions", "2026-01-02", "--reason", f"{port} {type(cause).__name__}")
    result = lab.failing(port, cause).errata(*words)
    runs = ledger.runs.list()
    if port == "pins":  # tags come after the record, and may be put again
        assert_harmless(result.out, result.err)
    else:
        assert len(runs) == before
        assert result.code != 0
        assert_harmless(result.out.replace("Traceback", ""), result.err.replace("Traceback", ""))
        assert result.err.count("error[") == 1
    assert lab.client.audit_verify().ok


def test_a_ledger_that_is_no_ledger_is_told_in_a_sentence(tmp_path: Path):
    """Another file in its place, a directory, a database of someone else: nothing is created or changed."""
    import io

    from errata.cli.app.session import CliEnvironment
    from errata.cli.main import main

    root = make_project(tmp_path / "project")
    make_tables(root)
    place = root / ".errata/ledger.db"
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE run (x)")
    other.close()
    for content in (b"not a database, but long enough to be looked at" * 100, (tmp_path / "other.db").read_bytes()):
        place.write_bytes(content)
        out, err = io.StringIO(), io.StringIO()
        world = CliEnvironment(out=out, err=err, interactive=False, environ={"ERRATA_USER": "ana"}, width=100)
        words = ("-C", str(root), "plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "r")
        assert main(words, world) != 0
        assert_harmless(out.getvalue(), err.getvalue())
        assert b"errata" not in place.read_bytes()
        assert len(place.read_bytes()) == len(content)
        for rest in root.glob(".errata/ledger.db-*"):
            rest.unlink()
    place.unlink()
    place.mkdir()
    out, err = io.StringIO(), io.StringIO()
    world = CliEnvironment(out=out, err=err, interactive=False, environ={"ERRATA_USER": "ana"}, width=100)
    assert main(("-C", str(root), "status"), world) != 0
    assert_harmless(out.getvalue(), err.getvalue())


def test_the_starter_project_has_no_secret_to_forget():
    """No default password, key or token anywhere in what ``errata init`` writes."""
    from importlib.resources import files

    from errata.text.secrets import classify_secret, is_secret_name

    for template in (files("errata.project") / "templates").iterdir():
        for line in template.read_text().splitlines():
            if line.lstrip().startswith("#"):
                continue
            assert classify_secret(line) is None
            assert not is_secret_name(line.partition(":")[0])
