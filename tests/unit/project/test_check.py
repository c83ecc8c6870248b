from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from errata.errors import EngineError, NotFound, ProjectFileError
from errata.model.partition import Grain
from errata.model.product import LINEAGE_BY_DEFAULT
from errata.ports.tables import Column, PartitionField, TableDescription
from errata.project import load_project
from errata.project.check import check_project
from errata.wiring.check import check_files
from unit.project.conftest import PRODUCT, PROJECT, Write

BY_DAY = PartitionField("business_date", "date", "identity", Grain.DAY)


@dataclass(frozen=True)
class Facts(TableDescription):
    """A table that a test made up."""

    table: str = "lake.fin.daily_revenue"
    table_uuid: str = "0"
    columns: tuple[Column, ...] = (Column("business_date", "date"), Column("account_id", "string"))
    partition_fields: tuple[PartitionField, ...] = (BY_DAY,)
    snapshot_id: str | None = None
    format_version: int = 2


@dataclass(frozen=True)
class Tables:
    """A catalog of made-up tables."""

    tables: dict[str, Facts] = field(default_factory=lambda: {"lake.fin.daily_revenue": Facts()})

    def describe(self, table: str) -> Facts:
        if table not in self.tables:
            raise NotFound(f"table {table} was not found")
        return self.tables[table]


def with_transform(root: Path, text: str = "def build(ctx, transactions): ...\n") -> Path:
    (root / "transforms").mkdir(exist_ok=True)
    (root / "transforms" / "daily_revenue.py").write_text(text, encoding="utf-8")
    return root


def found(root: Path, tables: Tables | None = None, level: str = "problem") -> list[str]:
    listed = check_project(load_project(root), tables or Tables())
    return [str(problem) for problem in listed if problem.level == level]


def test_a_project_that_agrees_has_no_problems(write: Write):
    """Files, code and table say the same."""
    assert found(with_transform(write())) == []


def test_a_missing_module_names_the_file_that_would_hold_it(write: Write):
    """The line is that of the call."""
    assert found(write()) == [
        (
            "products/daily_revenue.yaml:7: transform.call: expected the module in transforms/daily_revenue.py "
            'of the project; found "transforms.daily_revenue:build"'
        )
    ]


def test_a_transform_is_a_function_or_a_query(write: Write):
    """One of the two keys; a file that is not there has the line of its key."""
    call = 'call: "transforms.daily_revenue:build"'
    with pytest.raises(ProjectFileError, match="7: transform: expected one of call and sql"):
        load_project(write(product=PRODUCT.replace(call, f"{call}, sql: transforms/daily_revenue.sql")))
    with pytest.raises(ProjectFileError, match=r"7: transform\.sql: expected a file of the project such as"):
        load_project(write(product=PRODUCT.replace(call, "sql: ../elsewhere.sql")))
    root = write(product=PRODUCT.replace(call, "sql: transforms/daily_revenue.sql"))
    assert found(root) == [
        (
            "products/daily_revenue.yaml:7: transform.sql: expected the file in the project; "
            'found "transforms/daily_revenue.sql"'
        )
    ]


@pytest.mark.parametrize(
    "text,said",
    [
        (
            "def biuld(ctx): ...\n",
            (
                'products/daily_revenue.yaml:7: transform.call: expected a function "build" '
                'in transforms/daily_revenue.py (nearest: "biuld"); found "transforms.daily_revenue:build"'
            ),
        ),
        ("x = 1\ndef build(:\n", "transforms/daily_revenue.py:2: not Python: invalid syntax"),
        (
            "\ndef build(): ...\n",
            "transforms/daily_revenue.py:2: build() takes nothing; expected ctx and then the inputs by name",
        ),
        (
            "def build(ctx, transactions, fx, more=1, *, other): ...\n",
            (
                'transforms/daily_revenue.py:1: build() takes "fx", '
                "which is not an input of fin.daily_revenue (transactions)"
            ),
        ),
        (
            "def build(ctx, *, more=1): ...\n",
            (
                'transforms/daily_revenue.py:1: build() lacks "transactions", an input of fin.daily_revenue; '
                "expected every input by name"
            ),
        ),
    ],
)
def test_a_transform_that_does_not_fit_is_named(write: Write, text: str, said: str):
    """The function is there, is Python and takes what the product gives."""
    assert said in found(with_transform(write(), text))


def test_checking_does_not_run_the_projects_code(write: Write):
    """A module that would do something on import is only read."""
    root = write()
    bomb = f"import pathlib\npathlib.Path({str(root / 'ran')!r}).touch()\n"
    assert found(with_transform(root, bomb + "def build(ctx, transactions): ...\n")) == []
    assert not (root / "ran").exists()


@pytest.mark.parametrize(
    "text",
    [
        "from transforms.shared import build\n",
        "build = make('daily')\n",
        "def build(ctx, **inputs): ...\n",
        "@timed\ndef build(ctx): ...\n",
    ],
)
def test_a_function_made_elsewhere_gets_the_benefit_of_the_doubt(write: Write, text: str):
    """Only importing could tell whether it is one."""
    assert found(with_transform(write(), text)) == []


def test_missing_tables_and_columns_are_named_at_their_line(write: Write):
    """Every name in the file is looked up in the table."""
    root = with_transform(
        write(
            product=PRODUCT.replace("account_id]", "acount_id]"),
            extra="  rates: {table: lake.ref.fx, partition: day}\n"
            "  gone: {table: lake.ref.gone}\n"
            "checks:\n"
            "  - {metric: nullValues, column: currency, mustBe: 0}\n"
            "  - {metric: duplicateValues, columns: [business_date, nope], mustBe: 0}\n",
        ),
        "def build(ctx, **inputs): ...\n",
    )
    tables = Tables({"lake.fin.daily_revenue": Facts(), "lake.ref.fx": Facts("lake.ref.fx")})
    file, of = "products/daily_revenue.yaml", "expected a column of lake.fin.daily_revenue"
    assert found(root, tables) == [
        f'{file}:6: target.key[1]: {of} (nearest: "account_id"); found "acount_id"',
        f'{file}:15: checks[0].column: {of}; found "currency"',
        f'{file}:16: checks[1].columns[1]: {of}; found "nope"',
        f'{file}:12: inputs.rates.partition: expected a column of lake.ref.fx; found "day"',
        f"{file}:13: inputs.gone.table: table lake.ref.gone was not found",
    ]


def test_the_column_must_have_the_grain(write: Write):
    """Days of a whole number cannot be told; a spec that is not by day costs a rewrite, which the plan says."""
    root = with_transform(write())
    month = PartitionField("business_date", "timestamptz", "month", Grain.MONTH)
    said = "products/daily_revenue.yaml:5: target.partition.grain: business_date of lake.fin.daily_revenue is"

    def with_type(kind: str, *fields: PartitionField) -> list[str]:
        columns = tuple(Column(one.name, kind if one.name == "business_date" else one.type) for one in Facts().columns)
        return found(root, Tables({"lake.fin.daily_revenue": Facts(columns=columns, partition_fields=fields)}))

    for kind in ("date", "timestamp", "timestamptz", "string"):
        assert with_type(kind, month) == with_type(kind) == with_type(kind, BY_DAY) == []
    by_number = PartitionField("business_date", "int", "identity", Grain.VALUE)
    assert with_type("int", by_number) == [f'{said} int; expected value; found "day"']
    assert with_type("decimal(9, 2)") == [f'{said} decimal(9, 2); no grain fits that; found "day"']


def test_missing_lineage_columns_come_with_the_statement_that_adds_them(write: Write):
    """The statement has the missing ones only."""
    root = with_transform(write(extra="lineage_columns: true\n"))
    there = (*Facts().columns, *(Column(name, "string") for name in LINEAGE_BY_DEFAULT[:-2]))
    assert found(root, Tables({"lake.fin.daily_revenue": Facts(columns=there)})) == [
        (
            "products/daily_revenue.yaml:12: lineage_columns: lake.fin.daily_revenue lacks reference_data_version, "
            "restatement_reason; add: ALTER TABLE lake.fin.daily_revenue ADD COLUMNS (reference_data_version STRING, "
            "restatement_reason STRING)"
        )
    ]


def test_a_second_person_must_be_able_to_approve_and_to_publish(write: Write):
    """A project in which only the requester could approve would stop at the first plan."""
    everything = "people:\n  ana: {roles: [requester, operator, approver, publisher]}\n"
    root = with_transform(write(project=PROJECT.partition("people:")[0] + everything))
    but = "nobody but the requester has the role"
    assert found(root) == [
        f"errata.yaml:6: people: {but} approver; expected another person",
        f"errata.yaml:6: people: {but} publisher; expected another person",
    ]
    nobody = "people:\n  ana: {roles: [requester, operator, publisher]}\n  bo: {roles: [publisher]}\n"
    root = with_transform(write(project=PROJECT.partition("people:")[0] + nobody))
    assert found(root) == ["errata.yaml:6: people: nobody has the role approver"]
    services = (
        "people:\n  ana: {roles: [requester, operator]}\n  bo: {roles: [approver]}\n"
        "  s: {roles: [publisher], service: true}\n"
    )
    root = with_transform(write(project=PROJECT.partition("people:")[0] + services))
    only = "only service accounts have the role publisher; expected a person, who releases and rolls back"
    assert found(root) == [f"errata.yaml:6: people: {only}"]


def test_programs_of_channels_and_consumers_must_be_there(write: Write):
    """A name is looked up in PATH, a path from the project's directory."""
    also = """\
channels:
  pager: {command: [./page.sh]}
  desk: {command: [sh]}
consumers:
  x:
    reads: [fin.daily_revenue]
    refresh: [{command: [no-such-program-of-errata, "{partition}"]}]
    verify: {command: [./show.sh, "{partition}"], equals: count(*)}
"""
    places = ["channels.pager.command[0]", "consumers.x.refresh[0].command[0]", "consumers.x.verify.command[0]"]
    assert [one.split(": ")[1] for one in found(with_transform(write(also=also)))] == places


def test_the_program_of_the_alarm_must_be_there(write: Write):
    """By name as the shell finds it, by path from the project; what cannot be started is told before an emergency."""
    root = with_transform(write(also='alarm: {command: ["./page.sh", "x"]}\n'))
    said = "errata.yaml:8: alarm.command[0]: expected a program that can be started"
    assert found(root) == [said]
    (root / "page.sh").write_text("#!/bin/sh\n")
    assert found(root) == [said]
    (root / "page.sh").chmod(0o755)
    assert found(root) == []
    assert found(with_transform(write(also="alarm: {command: [sh]}\n"))) == []


@pytest.mark.parametrize("price,found_price", [("", "0"), ("price: {core_hour_usd: 0.00}\n", "0.00")])
def test_a_cost_cap_needs_a_price(write: Write, price: str, found_price: str):
    """Without one no run could ever reach the cap."""
    root = with_transform(write(also=f"limits: {{max_usd: 50}}\n{price}"))
    said = f"expected price.core_hour_usd above 0 beside it; it is {found_price}, so no run could reach it"
    assert found(root) == [f"errata.yaml:8: limits.max_usd: {said}"]
    assert found(with_transform(write(also="limits: {max_usd: 50}\nprice: {core_hour_usd: 0.05}\n"))) == []


def test_a_team_that_has_to_agree_needs_an_approver(write: Write):
    """Else every plan of its products would wait for ever; a product may leave its owner out."""
    team = PROJECT.replace(
        "ana: {roles: [requester, operator]}", "ana: {roles: [requester, operator], teams: [finance-data]}"
    )
    said = "owner: nobody of finance-data has the role approver; expected one, or approval: {owner: false}"
    assert found(with_transform(write(project=team))) == [f"products/daily_revenue.yaml:2: {said}"]
    assert found(with_transform(write(project=team, extra="approval: {owner: false}\n"))) == []


def test_an_engines_words_are_redacted(write: Write):
    """A catalog may put its address, password and all, into its error."""

    class Leaky:
        def describe(self, table: str) -> Facts:
            raise EngineError("could not connect to https://user:c4nary@catalog")

    root = with_transform(write(also="spark: {conf: {a: '${PASSWORD}'}}\n"))
    problems = check_project(load_project(root, environ={"PASSWORD": "c4nary"}), Leaky())
    assert [problem.message for problem in problems if problem.level == "problem"] == [
        "target.table: could not connect to https://user:${PASSWORD}@catalog"
    ]


def test_without_a_reader_tables_are_left_out(write: Write):
    """The files can be checked before there is a lake."""
    listed = check_project(load_project(with_transform(write())))
    assert [problem for problem in listed if problem.level == "problem"] == []


def test_a_topic_of_an_unknown_cluster_is_not_looked_for(write: Write):
    """The name of the cluster is the problem; nobody can be asked for the topic."""
    files = 'files: "raw/transactions/business_date={business_date}/*.parquet"'
    topic = "kafka: {cluster: events, topic: t, value: {columns: {business_date: date}}}"
    assert files in PRODUCT
    root = with_transform(write(product=PRODUCT.replace(files, topic)))
    told = [str(one) for one in check_files(root) if "kafka" in one.key]
    (problem,) = told
    assert "kafka.cluster: expected a cluster of kafka in errata.yaml (" in problem
