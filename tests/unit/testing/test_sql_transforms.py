"""Products with a SQL transform: checked with tables in memory, computed on Spark alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import errata
from errata.errors import NotFound, ProjectFileError, RunFailed, TransformFailed
from errata.testing import Lake, open_project
from errata.testing.transforms import TransformCase
from unit.testing.test_guide import PRODUCT, PROJECT

QUERY = """SELECT business_date, account_id,
  sum(amount) AS gross
FROM transactions
GROUP BY 1, 2
"""
CALL = 'call: "transforms.daily_revenue:build"'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose product is a query."""
    for place, text in {
        "errata.yaml": PROJECT,
        "products/daily_revenue.yaml": PRODUCT.replace(CALL, "sql: transforms/daily_revenue.sql"),
        "transforms/daily_revenue.sql": QUERY,
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    return tmp_path


@pytest.fixture
def lake() -> Lake:
    """Its tables."""
    lake, by_day = Lake(), ("business_date", "identity")
    money = {"business_date": "date", "account_id": "string", "amount": "decimal(18, 2)"}
    lake.create("lake.fin.transactions", money, partition=by_day).append(
        [{"business_date": "2026-01-01", "account_id": "a", "amount": "5.00"}]
    )
    totals = {"business_date": "date", "account_id": "string", "gross": "decimal(18, 2)"}
    lake.create("lake.fin.daily_revenue", totals, partition=by_day).append(
        [{"business_date": "2026-01-01", "account_id": "a", "gross": "10.00"}]
    )
    return lake


def plan(client: Any) -> Any:
    return client.plan("fin.daily_revenue", partitions="2026-01-01", reason="counted twice", as_="ana")


def test_check_compares_the_query_with_the_tables(project: Path, lake: Lake) -> None:
    """Columns of inputs and target are read from metadata; each problem has file and line."""
    with open_project(project, lake) as client:
        assert [problem for problem in client.check() if problem.file.endswith(".sql")] == []
        (project / "transforms/daily_revenue.sql").write_text(QUERY.replace("amount", "amout").replace("gross", "net"))
        told = [problem for problem in client.check() if problem.file.endswith(".sql")]
        assert ["the result lacks gross" in one.message for one in told if one.level == "warning"] == [True]
        assert [str(one) for one in told if one.level == "problem"] == [
            'transforms/daily_revenue.sql:2: amout: expected a column of transactions; did you mean "amount"?',
            "transforms/daily_revenue.sql:2: net: expected a column of lake.fin.daily_revenue",
        ]


@pytest.mark.parametrize("act", ["plan", "try"])
def test_a_broken_query_is_refused_before_anything_is_computed(project: Path, lake: Lake, act: str) -> None:
    """`plan` seals no query that `check` refuses, and `try` needs no JVM to refuse it."""
    (project / "transforms/daily_revenue.sql").write_text(QUERY + "LIMIT 5")
    with open_project(project, lake) as client, pytest.raises(ProjectFileError, match=r"daily_revenue\.sql:5: LIMIT"):
        plan(client) if act == "plan" else client.try_out("fin.daily_revenue", "2026-01-01", as_="ana")


def test_a_query_without_a_column_of_the_target_is_sealed_only_with_the_override(project: Path, lake: Lake) -> None:
    """The column is written as NULL then, and nobody learns of it from the first failed chunk."""
    (project / "transforms/daily_revenue.sql").write_text(
        "SELECT business_date, account_id FROM transactions WHERE amount > 0\n"
    )
    request = {"partitions": "2026-01-01", "reason": "counted twice", "as_": "ana"}
    with open_project(project, lake) as client:
        with pytest.raises(ProjectFileError, match="the result lacks gross of") as refused:
            client.plan("fin.daily_revenue", **request)
        assert refused.value.state == "nothing was changed"
        assert client.plan("fin.daily_revenue", **request, overrides={"schema": "gross is gone for good"}).id


def test_the_query_is_sealed_with_the_plan(project: Path, lake: Lake) -> None:
    """By its file and digest, in the same fields as Python code; a changed query is another plan."""
    with open_project(project, lake) as client:
        first = plan(client)
        assert first.code["call"] == "transforms/daily_revenue.sql"
        (project / "transforms/daily_revenue.sql").write_text(QUERY + "-- changed\n")
        request = {"partitions": "2026-01-01", "reason": "counted twice", "supersede": first.id, "as_": "ana"}
        again = client.plan("fin.daily_revenue", **request)
        assert again.code["digest"] != first.code["digest"]


def test_sql_does_not_run_on_tables_in_memory(project: Path, lake: Lake) -> None:
    """It is refused, never guessed; a function of the product can take its place."""
    with open_project(project, lake) as client:
        made = plan(client)
        client.approve(made.id, digest=made.digest, as_="bo")
        with pytest.raises(RunFailed) as failed:
            client.run(made.id, as_="ana")
    assert "expected its inputs as Spark frames" in failed.value.fields["run"].failures[0]["error"]


def test_the_kit_needs_a_session_for_a_query(project: Path) -> None:
    """Its error says so."""
    build = errata.sql_transform(str(project / "transforms/daily_revenue.sql"))
    case = TransformCase(build, {"transactions": [{"business_date": None}]}, ["2026-01-01"], column="business_date")
    with pytest.raises(TransformFailed, match="expected its inputs as Spark frames"):
        case.run()
    with pytest.raises(NotFound, match=r"none\.sql cannot be read"):
        errata.sql_transform(str(project / "none.sql"))
