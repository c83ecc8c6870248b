"""`errata record` where something is missing: nothing is sent, and the error names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import errata
from errata.client import Client
from errata.errors import EngineError, MissingCredentials

PROJECT = """\
project: p
ledger: sqlite:///ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///catalog.db", warehouse: wh}}
people: single-user
warehouses: {shop: {type: postgres, uri: "${SHOP_OF_TEST}"}}
kafka: {events: {bootstrap: "127.0.0.1:1", conf: {sasl.password: "${KAFKA_OF_TEST}"}}}
sources:
  database: {format: parquet, sql: {warehouse: shop, query: "SELECT 1 WHERE now() >= {start} AND now() < {end}"}}
  topic: {format: parquet, kafka: {cluster: events, topic: t}}
  api: {format: json, http: {url: "http://127.0.0.1:1/v1", start: a, end: b, headers: {k: "${KEY_OF_TEST}"}}}
  export: {format: json, http: {url: "http://127.0.0.1:1/v1", window: none, paging: file,
           token: {url: "http://127.0.0.1:1/t", form: {secret: "${KEY_OF_TEST}"}}}}
"""


@pytest.fixture
def open_project(tmp_path: Path) -> Callable[[], Client]:
    """Opens a project with a source of every kind that is recorded."""
    (tmp_path / "errata.yaml").write_text(PROJECT)
    return lambda: errata.open(str(tmp_path))


@pytest.mark.parametrize(
    "source, variable",
    [("database", "SHOP_OF_TEST"), ("topic", "KAFKA_OF_TEST"), ("api", "KEY_OF_TEST"), ("export", "KEY_OF_TEST")],
)
def test_a_source_whose_variable_is_not_set_is_not_asked(
    open_project: Callable[[], Client], source: str, variable: str
):
    """A header with the name of the variable in place of its value would go to a stranger's server."""
    window = {} if source == "export" else {"start": "2026-01-03", "end": "2026-01-04"}
    with open_project() as client, pytest.raises(MissingCredentials, match=f"variable {variable}") as refused:
        client.record(source, **window)
    assert refused.value.state == "nothing was recorded"


def test_a_database_that_does_not_answer_has_refused_no_query(
    open_project: Callable[[], Client], monkeypatch: pytest.MonkeyPatch
):
    """The error says that there was no connection, and shows no password."""
    monkeypatch.setenv("SHOP_OF_TEST", "postgresql://u:hidden@127.0.0.1:1/x")
    with open_project() as client, pytest.raises(EngineError, match="no connection to shop for source data") as failed:
        client.record("database", start="2026-01-03", end="2026-01-04")
    assert "hidden" not in f"{failed.value} {failed.value.hint}"
