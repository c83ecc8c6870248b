"""Statements about tables and views beside a target are repeated when the catalog gave no clear answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from errata.engines.spark.write.side_tables import SparkSideTables
from errata.errors import EngineError


class Session:
    """Runs statements; fails so often first."""

    def __init__(self, error: str, times: int) -> None:
        self.error, self.left = error, times
        self.ran: list[str] = []

    def sql(self, statement: str) -> None:
        self.ran.append(statement)
        if self.left:
            self.left -= 1
            raise RuntimeError(self.error)


def _writer(session: Session) -> SparkSideTables:
    runtime: Any = SimpleNamespace(session=session)
    return SparkSideTables(runtime, writer=SimpleNamespace())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error", ["CommitStateUnknownException: 502", "ServiceFailureException: 500", "TableAlreadyExistsException: late"]
)
def test_a_table_beside_the_target_is_created_once_whatever_the_catalog_answers(error: str) -> None:
    """``IF NOT EXISTS`` finds what a lost answer hid, so the statement is run again."""
    session = Session(error, 2)
    _writer(session).create(["CREATE TABLE IF NOT EXISTS a", "CREATE TABLE IF NOT EXISTS b"])
    assert session.ran == ["CREATE TABLE IF NOT EXISTS a"] * 3 + ["CREATE TABLE IF NOT EXISTS b"]


@pytest.mark.parametrize(
    "error",
    [
        "CommitStateUnknownException: 504",
        "AlreadyExistsException: View already exists: a.v",
        "AlreadyExistsException: View was updated concurrently: a.v",
        "BadRequestException: Malformed request: Cannot set last version id: no current version id has been set",
    ],
)
def test_a_view_is_shown_and_dropped_once_whatever_the_catalog_answers(error: str) -> None:
    """``OR REPLACE`` and ``IF EXISTS`` can be said twice, also when a catalog refuses a request that it got before."""
    session = Session(error, 1)
    _writer(session).show("lake.a.v", "SELECT 1")
    assert len(session.ran) == 2
    _writer(session).drop_view("lake.a.v")
    assert len(session.ran) == 3


def test_a_catalog_that_never_answers_is_an_error_with_a_next_step() -> None:
    """It is ours to explain, not Java's."""
    with pytest.raises(EngineError, match="no clear answer") as refused:
        _writer(Session("RESTException: reset", 99)).create(["CREATE TABLE IF NOT EXISTS a"])
    assert refused.value.hint
