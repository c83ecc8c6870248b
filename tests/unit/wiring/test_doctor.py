"""The doctor without a JVM: every check is made, and a catalog that does not answer is named."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import errata
from support.memory_world import MemoryWorld
from support.postgres import free_port
from support.world import PRODUCT

PROJECT = """
project: test
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {{type: {type}, uri: "{uri}", warehouse: .errata/warehouse}}
people: single-user
"""


def test_a_catalog_that_runs_have_used_is_missed(tmp_path: Path):
    """No catalog file is fine in a new project only: once something was planned, its absence is a problem."""
    with MemoryWorld.make(tmp_path / "world", days=1).client as client:
        client.plan(PRODUCT, partitions="2026-01-01", reason="a plan", as_="ana")
    with errata.open(str(tmp_path / "world")) as client:
        checks = {check.name: check for check in client.doctor()}
    lake = checks["catalog lake"]
    assert (lake.ok, lake.waiting) == (False, False)
    assert "expected a SQLite database" in lake.found
    assert lake.hint == "correct catalogs.lake.uri in errata.yaml"
    # one cause is one problem, and what does not need the catalog is checked
    assert not [name for name in checks if "lake." in name]
    assert checks["audit chain"].ok


def test_a_lost_catalog_does_not_keep_the_doctor_from_the_rest(tmp_path: Path):
    """Also while a rollback depends on a guard in that catalog."""
    world = MemoryWorld.make(tmp_path / "world", days=1)
    world.client.rollback(world.to("published"), reason="wrong", as_="bo")
    assert world.ledger.guards.open_hazards()
    world.client.close()
    with errata.open(str(tmp_path / "world")) as client:
        checks = {check.name: check for check in client.doctor()}
    assert not checks["catalog lake"].ok
    assert checks["ledger"].ok


@pytest.mark.parametrize("kind,uri", [("jdbc", "postgresql+psycopg://ana:canary@127.0.0.1:{port}/c"),
                                      ("rest", "http://127.0.0.1:{port}")])  # fmt: skip
def test_a_catalog_that_does_not_answer_is_named_and_the_other_checks_are_made(tmp_path: Path, kind: str, uri: str):
    """One failed check with a hint, no traceback, no password; jars are asked for by the groups the project needs."""
    text = PROJECT.format(type=kind, uri=uri.format(port=free_port()))
    (tmp_path / "errata.yaml").write_text(text, "utf-8")
    with errata.open(str(tmp_path)) as client:
        client.create_ledger()
        checks = {check.name: check for check in client.doctor()}
    lake = checks["catalog lake"]
    assert not lake.ok
    assert "catalog lake could not be opened" in lake.found
    assert "canary" not in lake.found
    assert lake.hint
    assert checks["ledger"].ok
    assert checks["ledger"].found.startswith("SQLite 3")
    assert ("jars postgres" in checks) == (kind == "jdbc")


@pytest.mark.slow
def test_silent_kafka_clusters_cost_the_doctor_one_timeout(tmp_path: Path):
    """Each is named, with what to look at; they are asked at the same time."""
    pytest.importorskip("confluent_kafka")
    clusters = "".join(f'  c{n}: {{bootstrap: "127.0.0.1:{free_port()}"}}\n' for n in range(3))
    text = PROJECT.format(type="jdbc", uri="sqlite:///.errata/catalog.db") + f"kafka:\n{clusters}"
    (tmp_path / "errata.yaml").write_text(text, "utf-8")
    with errata.open(str(tmp_path)) as client:
        client.create_ledger()
        began = time.monotonic()
        checks = {check.name: check for check in client.doctor()}
    assert time.monotonic() - began < 55  # three time-outs are 60 s
    for name in ("kafka c0", "kafka c1", "kafka c2"):
        assert (checks[name].ok, checks[name].found) == (False, f"Kafka cluster {name[6:]} did not answer in 20 s")
        assert "bootstrap" in (checks[name].hint or "")
