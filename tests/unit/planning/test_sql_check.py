"""A SQL transform is checked without a JVM: every flaw has its line, and nothing that Spark accepts is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from errata.planning.sql.check import MAX_CHARACTERS, find_sql_flaws
from errata.planning.sql.flaw import SqlSurroundings

AROUND = SqlSurroundings(
    inputs={
        "transactions": ("business_date", "account_id", "amount", "info"),
        "fx": ("day", "rate"),
        "files": None,  # columns that only Spark can tell
    },
    config=("config_scale",),
    outputs=("business_date", "account_id", "gross"),
    needed=("business_date", "account_id"),
    nullable=("gross",),
    target="lake.fin.daily",
    ignored=("produced_by_run_id",),
)

ACCEPTED = """
SELECT business_date, account_id, sum(amount) AS gross FROM transactions GROUP BY 1, 2
SELECT business_date, account_id, amount AS gross FROM transactions;
SELECT business_date, account_id, amount AS gross FROM transactions -- the end
WITH transactions AS (SELECT * FROM transactions WHERE amount > 0) SELECT business_date, account_id, sum(transactions.amount) gross FROM `Transactions` GROUP BY ALL
WITH T AS (SELECT business_date d, account_id, amount FROM transactions) SELECT d business_date, t.account_id, t.amount gross FROM t
SELECT t.business_date, account_id, sum(amount * rate) gross FROM transactions t JOIN fx ON t.business_date = fx.day GROUP BY ALL HAVING gross > :config_scale ORDER BY gross
SELECT business_date, account_id, amount gross FROM transactions WHERE array_contains(:partitions, cast(business_date AS string)) AND business_date >= :start AND business_date < :end
SELECT business_date, account_id, gross FROM (SELECT *, amount AS gross FROM transactions) x
SELECT business_date, account_id, e AS gross FROM transactions LATERAL VIEW explode(info) q AS e
SELECT business_date, account_id, info.gross.x AS gross FROM transactions
SELECT business_date, account_id, aggregate(info, 0, (a, x) -> a + x) gross FROM transactions
SELECT business_date, account_id, amount gross FROM transactions WHERE EXISTS (SELECT 1 FROM fx WHERE fx.day = transactions.business_date LIMIT 1)
SELECT business_date, account_id, amount gross FROM transactions WHERE account_id IN (SELECT rate FROM fx WHERE day = business_date)
SELECT business_date, account_id, amount gross FROM transactions UNION ALL SELECT day, 1, rate FROM fx
SELECT x business_date, y account_id, z AS gross FROM files
SELECT business_date, account_id, first_value(amount) OVER (PARTITION BY account_id ORDER BY amount) gross FROM transactions
SELECT timestampadd(MONTH, 1, business_date) business_date, account_id, extract(year FROM business_date) gross FROM transactions
SELECT business_date, account_id, gross FROM transactions PIVOT (sum(amount) FOR info IN ('a' AS gross))
SELECT d business_date, account_id, amount gross FROM (VALUES (1, 2, 3)) v(d, account_id, amount)
(SELECT business_date, account_id, amount gross FROM transactions)
SELECT business_date, account_id, amount gross FROM transactions, range(3)
SELECT * EXCEPT (info) FROM transactions
FROM transactions SELECT business_date, account_id, amount AS gross
SELECT /*+ BROADCAST(fx) */ business_date, account_id, rate gross FROM transactions JOIN fx ON business_date = day
SELECT business_date, account_id, r.rate gross FROM transactions JOIN LATERAL (SELECT rate FROM fx WHERE fx.day = transactions.business_date) r
SELECT business_date, account_id, amount gross, 'x' AS produced_by_run_id FROM transactions
SELECT business_date, account_id, amount gross FROM transactions ORDER BY amount LIMIT 5
"""  # noqa: E501


@pytest.mark.parametrize("query", ACCEPTED.strip().splitlines())
def test_a_query_that_spark_accepts_is_not_refused(query: str) -> None:
    """Sub-queries, stars, lateral views, lambdas and names that hide an input are followed, or left to Spark."""
    assert find_sql_flaws(query, AROUND) == ()


ROWS = "SELECT business_date, account_id,\n  {} AS gross\nFROM transactions"


@pytest.mark.parametrize(
    "query, line, said",
    [
        ("", None, "holds no statement"),
        ("-- nothing\n", None, "holds no statement"),
        ("\nDELETE FROM transactions", 2, "expected one SELECT, found DELETE"),
        ("SELECT 1;\nSELECT 2", 1, "one statement and nothing after its semicolon"),
        (ROWS.format("amount") + ";\n-- more", 3, "nothing after its semicolon"),
        ("SELECT business_date,\n  sum(amount\nFROM transactions", 2, "not Spark SQL: ( is never closed; expected )"),
        (ROWS.format("cast(amount AS decimal(16,2)"), 2, "( is never closed"),
        (ROWS.format("amount)"), 2, ") closes no ("),
        ("SELECT business_date, account_id,\n  amount AS gross,\nFROM transactions", 2, "between the comma and FROM"),
        (ROWS.format("concat(amount,)"), 2, "between the comma and )"),
        (ROWS.replace(" AS gross", "").format("amount +"), 3, "not Spark SQL: a part of the query is missing"),
        (ROWS.format("amount") + "\nWHERE", 4, "not Spark SQL: a part of the query is missing"),
        ("SELECT business_date, account_id\nFROM transactions", 1, "the result lacks gross of lake.fin.daily"),
        ("SELECT 'never closed", None, "not Spark SQL"),
        ("SELECT business_date, account_id\nFROM lake.fin.other", 2, "lake.fin.other: expected an input"),
        ("SELECT business_date, account_id\nFROM transaction", 2, 'did you mean "transactions"?'),
        ("SELECT business_date, account_id FROM parquet.`/data/x`", 1, "expected an input"),
        (ROWS.format("amout"), 2, 'amout: expected a column of transactions; did you mean "amount"?'),
        (ROWS.format("transactions.amout"), 2, "transactions.amout: expected a column of transactions"),
        ("WITH a AS (SELECT day FROM fx)\nSELECT a.rate business_date, 1 account_id FROM a", 2, "a.rate"),
        (ROWS.format(":stat"), 2, ":stat: expected one of :clock, :config_scale"),
        (ROWS.format("?"), 2, "expected a parameter by name"),
        (ROWS.format("now()"), 2, ":clock is the clock of the run"),
        (ROWS.format("current_date"), 2, ":clock is the clock of the run"),
        (ROWS.format("timestamp 'now'"), 2, "is the current time"),
        (ROWS.format("rand(7)"), 2, "rand(): expected the same rows every time"),
        (ROWS.format("uuid()"), 2, "sha2("),
        (ROWS.format("monotonically_increasing_id()"), 2, "the same rows every time"),
        (ROWS.format("java_method('java.util.UUID', 'randomUUID')"), 2, "runs code that no plan seals"),
        (ROWS.format("lake.fin.own_function(amount)"), 2, "no plan seals a function of a catalog"),
        (ROWS.format("first(amount)") + " GROUP BY 1, 2", 2, "first(): takes any row"),
        (ROWS.format("amount") + "\nLIMIT 5", 4, "expected an ORDER BY"),
        (ROWS.format("amount") + " TABLESAMPLE (10 PERCENT)", 3, "TABLESAMPLE"),
        (ROWS.replace(" AS gross", "").format("sum(amount)") + " GROUP BY 1, 2", 2, "expected a name for this column"),
        (ROWS.replace("gross", "total").format("amount"), 2, "total: expected a column of lake.fin.daily"),
        ("SELECT business_date, amount AS gross\nFROM transactions", 1, "the result lacks account_id"),
        ("SELECT *\nFROM transactions", 1, "amount: expected a column of lake.fin.daily"),
        (ROWS.replace("account_id,", "account_id, account_id,").format("amount"), 1, "each column once"),
        ("x" * (MAX_CHARACTERS + 1), None, "characters"),
        ("SELECT " + "(" * 4000 + "1" + ")" * 4000, None, "nested"),
    ],
)
def test_a_flaw_is_named_with_its_line(query: str, line: int | None, said: str) -> None:
    """Statement, inputs, columns, parameters, functions and the result."""
    found = find_sql_flaws(query, AROUND)
    assert [(one.line, said in one.message) for one in found if said in one.message][:1] == [(line, True)], found


def test_the_query_of_the_guide_passes() -> None:
    """As printed, with the inputs that it names."""
    page = Path(__file__).resolve().parents[3] / "docs/guides/write-a-transform.md"
    query = page.read_text("utf-8").partition("```sql\n")[2].partition("```")[0]
    inputs = {
        "transactions": ("business_date", "account_id", "amount", "currency"),
        "fx_rates": ("currency", "rate"),
    }
    columns = ("business_date", "account_id", "gross", "row_id")
    assert find_sql_flaws(query, replace(AROUND, inputs=inputs, outputs=columns)) == ()


def test_every_flaw_is_told_at_once() -> None:
    """Not one per attempt."""
    found = find_sql_flaws("SELECT business_date, account_id, amout AS gros,\n rand() r\nFROM transactions", AROUND)
    assert [one.line for one in found] == [1, 1, 1, 2, 2]
    assert [one.message for one in found if one.level == "warning"] == [
        'the result lacks gross of lake.fin.daily; only a plan with --override schema="WHY" writes NULL'
    ]


def test_a_start_needs_partitions_by_time() -> None:
    """NULL would compare with nothing, and the result would be empty without a word."""
    found = find_sql_flaws(ROWS.format(":start"), replace(AROUND, has_interval=False))
    assert "only partitions by time" in found[0].message


def test_columns_that_are_not_known_are_not_judged() -> None:
    """Source files that declare no columns are known to Spark alone."""
    unknown = replace(AROUND, inputs={"transactions": None}, outputs=None)
    assert find_sql_flaws(ROWS.format("anything"), unknown) == ()
