"""The doctor without a JVM: every check is made, and a catalog that does not answer is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import errata
from support.postgres import free_port

PROJECT = """
project: test
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {{type: {type}, uri: "{uri}", warehouse: .errata/warehouse}}
people: single-user
"""


@pytest.mark.parametrize("kind,uri", [("jdbc", "postgresql+psycopg://ana:canary@127.0.0.1:{port}/c"),
                                      ("rest", "http://127.0.0.1:{port}")])  # fmt: skip
def test_a_catalog_that_does_not_answer_is_named_and_the_other_checks_are_made(tmp_path: Path, kind: str, uri: str):
    """One failed check with a hint, no traceback, no password; jars are asked for by the groups the project needs."""
    text = PROJECT.format(type=kind, uri=uri.format(port=free_port()))
    (tmp_path / "errata.yaml").write_text(text, "utf-8")
    with errata.open(str(tmp_path)) as client:
        checks = {check.name: check for check in client.doctor()}
    lake = checks["catalog lake"]
    assert not lake.ok
    assert "catalog lake could not be opened" in lake.found
    assert "canary" not in lake.found
    assert lake.hint
    assert checks["ledger"].ok
    assert checks["ledger"].found.startswith("SQLite 3")
    assert ("jars postgres" in checks) == (kind == "jdbc")
