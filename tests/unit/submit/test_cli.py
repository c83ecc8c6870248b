"""errata submit: the printed command, its JSON, and its refusals."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from errata.canonical import canonical_bytes
from errata.jars import default_cache_dir
from errata.submit import application
from unit.cli import samples as views
from unit.cli.sample_client import FakeClient, Result, errata
from unit.submit import samples

GOLDEN = Path(__file__).parent / "goldens" / "cli.sh"
PROJECT = """
project: finsight
ledger: LEDGER
catalogs:
  lake: {type: rest, uri: "https://catalog.example.com", warehouse: "s3://lake/warehouse"}
spark:
  master: "spark://10.0.0.1:7077"
  conf: {spark.executor.memory: 8g}
people: single-user
"""
PRODUCT = """
product: fin.daily_revenue
owner: finance
target: {table: lake.fin.daily_revenue, partition: {column: day, grain: day}, key: [day]}
transform: {call: "transforms.daily_revenue:build", version: 1.0.0}
inputs: {raw: {files: "s3://lake/raw/day={day}/*.parquet", partition: day}}
"""
Submit = Callable[..., Result]


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Submit:
    """``errata submit RUN …`` in a project whose ledger address holds a password from the environment."""
    monkeypatch.setenv("LEDGER_PASSWORD", samples.PASSWORD)
    (tmp_path / "products").mkdir()
    (tmp_path / "products/p.yaml").write_text(PRODUCT)

    def run(*arguments: str, ledger: str = "'postgresql+psycopg://errata:${LEDGER_PASSWORD}@db/errata'") -> Result:
        (tmp_path / "errata.yaml").write_text(PROJECT.replace("LEDGER", ledger, 1))
        client = FakeClient({"manifest_bytes": canonical_bytes(samples.MANIFEST)})
        return errata("-C", str(tmp_path), "submit", views.RUN, *arguments, client=client)

    return run


def test_the_command_is_all_of_stdout(submit: Submit, tmp_path: Path):
    """So that it can be kept as a file; paths of this machine are what differs."""
    result = submit("--print", "standalone", "--workers", "2", "--parallel", "4")
    assert result.code == 0, result.err
    places = {str(tmp_path): "/project", str(Path(application.__file__)): "/errata/submit/application.py"}
    places |= {str(default_cache_dir()): "/cache/jars", sys.executable: "/venv/bin/python"}
    text = result.out
    for place, name in places.items():
        text = text.replace(place, name)
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def test_json_gives_words_for_programs(submit: Submit):
    """One command per worker, the placeholders, and the variables that are still open."""
    data = submit("--print", "yarn", "--workers", "3", "--json").json
    assert data["run_id"] == views.RUN
    assert len(data["commands"]) == 3
    assert data["commands"][0][:3] == ["spark-submit", "--master", "yarn"]
    assert "spark.yarn.appMasterEnv.LEDGER_PASSWORD=${LEDGER_PASSWORD}" in data["commands"][0]
    assert set(data["fill_in"]) == {"<environment.tar.gz>", "<project.tar.gz>"}
    assert data["environment"] == ["LEDGER_PASSWORD"]
    assert [jar["sha256"] for jar in data["jars"]] == list(samples.JARS.values())


def test_no_secret_reaches_any_stream(submit: Submit):
    """The ledger's password stays in the environment."""
    for target in ("emr-serverless", "emr", "kubernetes", "yarn", "standalone"):
        result = submit("--print", target, "--json")
        assert result.code == 0, result.err
        assert samples.PASSWORD not in result.out + result.err


def test_a_sqlite_ledger_is_refused_for_a_driver_elsewhere(submit: Submit):
    """With the reason, what to write instead, and exit code 3; a standalone driver runs here and may."""
    refused = submit("--print", "emr", ledger="sqlite:///.errata/ledger.db")
    assert (refused.code, refused.out) == (3, "")
    assert "another machine cannot see" in " ".join(refused.err.split())
    assert submit("--print", "standalone", ledger="sqlite:///.errata/ledger.db").code == 0


def test_a_target_that_does_not_exist_is_wrong_usage(submit: Submit):
    """With the ones that do."""
    result = submit("--print", "mesos")
    assert result.code == 2
    assert "emr-serverless, emr, kubernetes, yarn, standalone" in " ".join(result.err.split())
