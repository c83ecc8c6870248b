"""`errata check` on projects with many mistakes: everything in one pass, and nothing that only follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.project import load_project
from errata.project.check import check_project
from errata.wiring.check import check_files
from unit.project.conftest import PRODUCT, PROJECT, Write
from unit.project.test_check import Facts, Tables, with_transform

MANY_PROJECT = """\
project: finsight
ledgr: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/catalg.db", warehouse: .errata/warehose}
people:
  ana: {roles: [requester, operator]}
limits: {max_partitions: many}
"""
MANY_PRODUCT = """\
product: fin.daily_revenue
target:
  table: lake.fin.daily_revenue
  partition: {column: business_date, grain: dayly}
  key: [business_date, account_id]
transform: {call: "transforms.daily_revenue:biuld", version: 2.4.1}
inputs:
  transactions:
    files: "raw/transaction/business_date={business_date}/*.parquet"
    partition: business_date
  rates: {table: other.ref.rates}
checks:
  - {metric: rowCount, mustBe: none}
compare:
  - {metric: "sum(x)", warn: 90%, block: 60%}
"""
DRAFT = """\
product: fin.draft
owner: CHANGE_ME
target:
  table: lake.fin.draft
  partition: {column: business_date, grain: day}
  key: []
transform: {call: "transforms.nowhere:build", version: 1}
inputs:
  source: {table: lake.CHANGE_ME.CHANGE_ME, partition: business_date}
publish: {mode: replace}
"""


def places(root: Path) -> list[str]:
    """File, line and key of every problem."""
    return [f"{one.file}:{one.line} {one.key}" for one in check_files(root) if one.level == "problem"]


def test_every_mistake_of_every_file_is_found_in_one_pass(write: Write):
    """Typos, wrong values, rules across keys, code, files, catalog and warehouse: no pass hides another."""
    root = with_transform(write(project=MANY_PROJECT, product=MANY_PRODUCT))
    (root / "products" / "draft.yaml").write_text(DRAFT, encoding="utf-8")
    (root / "products" / "broken.yaml").write_text("product: [\n", encoding="utf-8")
    assert places(root) == [
        "errata.yaml:1 ledger",
        "errata.yaml:2 ledgr",
        "errata.yaml:4 catalogs.lake.warehouse",
        "errata.yaml:4 catalogs.lake.uri",
        "errata.yaml:6 people",
        "errata.yaml:6 people",
        "errata.yaml:7 limits.max_partitions",
        "products/broken.yaml:2 ",
        "products/daily_revenue.yaml:1 owner",
        "products/daily_revenue.yaml:4 target.partition.grain",
        "products/daily_revenue.yaml:6 transform.call",
        "products/daily_revenue.yaml:9 inputs.transactions.files",
        "products/daily_revenue.yaml:11 inputs.rates.table",
        "products/daily_revenue.yaml:13 checks[0].mustBe",
        "products/daily_revenue.yaml:15 compare[0].warn",
        "products/draft.yaml:2 owner",
        "products/draft.yaml:7 transform.call",
        "products/draft.yaml:9 inputs.source.table",
        "products/draft.yaml:10 publish.mode",
    ]


@pytest.mark.parametrize(
    "old,new,key",
    [
        ("    partition: business_date\n", "    partiton: business_date\n", "inputs.transactions.partiton"),
        ("    partition: business_date\n", "    partition: [business_date]\n", "inputs.transactions.partition"),
        ("version: 2.4.1", "version: 2.4.1, confg: {a: 1}", "transform.confg"),
        ("owner: finance-data", "owner: [a]", "owner"),
    ],
)
def test_one_mistake_is_one_problem(write: Write, old: str, new: str, key: str):
    """What seems wrong only because a key beside it could not be read is not reported."""
    root = with_transform(write(product=PRODUCT.replace(old, new)))
    found = [one for one in places(root) if "daily_revenue.yaml" in one and "files" not in one]
    assert [one.split()[-1] for one in found if "table" not in one] == [key]


def test_a_project_with_wrong_files_still_does_not_load(write: Write):
    """What is left of wrong files is good for finding problems and for nothing else."""
    root = write(project=MANY_PROJECT, product=MANY_PRODUCT)
    with pytest.raises(Exception, match="the project files were refused: 8 problems"):
        load_project(root)


def test_a_pattern_that_matches_nothing_says_where_the_search_ended(write: Write):
    """The nearest directory that exists, and what is in it."""
    root = with_transform(write())
    for day in ("2026-01-01", "2026-01-02"):
        (root / "raw" / "transactions" / f"date={day}").mkdir(parents=True)
    (said,) = [one.message for one in check_files(root) if one.key.endswith("files")]
    assert said == (
        "inputs.transactions.files: no file matches it; the nearest directory, raw/transactions, has date=2026-01-01, "
        'date=2026-01-02; found "raw/transactions/business_date={business_date}/*.parquet"'
    )
    (root / "raw" / "transactions" / "business_date=2026-01-01").mkdir()
    (root / "raw" / "transactions" / "business_date=2026-01-01" / "part-0.parquet").touch()
    assert not [one for one in check_files(root) if one.key.endswith("files")]


def test_a_catalog_that_does_not_answer_is_one_problem_of_the_project_file(write: Write):
    """The fault is in errata.yaml, however many tables the catalog has."""
    root = with_transform(write(extra="  rates: {table: lake.ref.rates}\n"))
    (problem,) = [one for one in check_files(root) if "catalog" in one.key]
    assert (problem.file, problem.line, problem.key) == ("errata.yaml", 4, "catalogs.lake.uri")
    assert "expected a SQLite database at" in problem.message


@pytest.mark.parametrize(
    "columns,warned",
    [(None, True), ("[account_id]", False), ("[account_id, business_date]", False), ("[account_id, x]", True)],
)
def test_a_key_that_no_rule_holds_to_be_unique_is_a_warning(write: Write, columns: str | None, warned: bool):
    """Rows are matched by the key; uniqueness of some of its columns is enough."""
    rule = f"checks:\n  - {{metric: duplicateValues, columns: {columns}, mustBe: 0}}\n" if columns else ""
    tables = Tables({"lake.fin.daily_revenue": Facts()})
    found = check_project(load_project(with_transform(write(extra=rule))), tables)
    assert [one.key for one in found if one.level == "warning"] == (["target.key"] if warned else [])


def test_a_warehouse_that_is_not_there_is_named_with_what_is(write: Write):
    """A wrong path shows as what lies beside it."""
    root = with_transform(write(project=PROJECT.replace(".errata/warehouse", ".errata/warehose")))
    (said,) = [one.message for one in check_project(load_project(root), Tables()) if "warehouse" in one.key]
    assert said.startswith(f"catalogs.lake.warehouse: there is no directory {root.resolve()}/.errata/warehose;")
    assert f"{root.resolve()}/.errata has warehouse;" in said
