"""What the guide on copies in Snowflake shows is accepted: its files, its key, its table of types."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from errata.model.copy.column_types import find_column_problem
from errata.model.copy.declaration import REFRESH
from errata.project import load_project
from errata.wiring.warehouse_accounts import build_account

PAGE = (Path(__file__).resolve().parents[3] / "docs/guides/snowflake.md").read_text("utf-8")
PROJECT = """project: fin
ledger: sqlite:///.errata/ledger.db
catalogs: {lake: {type: jdbc, uri: "sqlite:///lake/catalog.db", warehouse: lake/warehouse}}
people: single-user
"""
PRODUCT = """product: fin.daily_revenue
owner: finance
target:
  table: lake.fin.daily_revenue
  partition: {column: business_date, grain: day}
  key: [business_date]
COPIES
transform: {call: "transforms.daily_revenue:build", version: 1.0.0}
inputs: {rates: {table: lake.ref.rates, reference: corrected_truth}}
"""
FITS = {
    "decimal(p, s)": ("decimal(18, 2)", ["NUMBER(18,2)", "NUMBER(38,2)"], ["NUMBER(18,4)", "NUMBER(12,2)", "FLOAT"]),
    "int": ("int", ["NUMBER(10,0)", "NUMBER(38,0)"], ["NUMBER(9,0)", "NUMBER(10,2)"]),
    "long": ("long", ["NUMBER(19,0)", "NUMBER(38,0)"], ["NUMBER(18,0)"]),
    "timestamptz": ("timestamptz", ["TIMESTAMP_LTZ(9)", "TIMESTAMP_TZ(6)"], ["TIMESTAMP_NTZ(9)", "TIMESTAMP_TZ(3)"]),
    "timestamp": ("timestamp", ["TIMESTAMP_NTZ(6)"], ["TIMESTAMP_TZ(9)", "TIMESTAMP_NTZ(3)"]),
    "date": ("date", ["DATE"], ["TIMESTAMP_NTZ(9)"]),
    "boolean": ("boolean", ["BOOLEAN"], ["NUMBER(1,0)"]),
    "string": ("string", ["VARCHAR(16777216)", "VARCHAR(20)"], ["VARIANT"]),
    "float": ("float", ["FLOAT"], ["NUMBER(38,10)"]),
    "double": ("double", ["FLOAT"], ["NUMBER(38,10)"]),
    "lists": ("list<string>", [], ["ARRAY"]),
    "maps": ("map<string, string>", [], ["OBJECT"]),
    "structs": ("struct<1: a: optional string>", [], ["OBJECT"]),
    "binary": ("binary", [], ["BINARY(8388608)"]),
}
"""What the first column of the page's table says: a type of the lake, types that hold it, and types that do not."""


def blocks(language: str) -> list[str]:
    """What the page shows in this language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def save(directory: Path, copies: str) -> None:
    """A project with the page's warehouse, and a product with these copies."""
    (directory / "products").mkdir()
    (directory / "errata.yaml").write_text(PROJECT + blocks("yaml")[0], "utf-8")
    (directory / "products/daily_revenue.yaml").write_text(PRODUCT.replace("COPIES", copies.rstrip()), "utf-8")


def test_the_declared_account_and_both_kinds_of_copies_are_accepted(tmp_path: Path) -> None:
    """The files of the page load: rows are replaced, or with ``refresh`` the table reads the lake itself."""
    _, product, linked = blocks("yaml")
    for n, (text, mode) in enumerate(((product.partition("target:\n")[2], "replace"), (linked, REFRESH))):
        (tmp_path / str(n)).mkdir()
        save(tmp_path / str(n), text)
        project = load_project(tmp_path / str(n), environ={})
        (copy,) = project.products["fin.daily_revenue"].target.copies
        assert (copy.name, copy.mode) == ("snow:DAILY_REVENUE", mode)
        assert project.warehouses["snow"].stage == "@LAKE_STAGE"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_key_that_the_page_creates_is_accepted(tmp_path: Path) -> None:
    """The three commands leave a key that only its owner can read and that Errata takes."""
    (commands,) = [block for block in blocks("console") if "openssl" in block]
    save(tmp_path, blocks("yaml")[2])
    for line in commands.splitlines():
        subprocess.run(line.removeprefix("$ "), shell=True, cwd=tmp_path, check=True, capture_output=True)  # noqa: S602
    account = build_account(load_project(tmp_path, environ={}).warehouses["snow"], tmp_path)
    assert account.read_key()
    assert (tmp_path / "snowflake.pem").stat().st_mode & 0o077 == 0


def test_the_table_of_types_is_what_the_check_does() -> None:
    """Every type of the page is held by the types that it names, and refused in others."""
    table = PAGE.partition("| in the lake | in Snowflake |\n|---|---|\n")[2].partition("\n\n")[0]
    named = {word.strip(" `") for line in table.splitlines() for word in re.split(r",(?![^(]*\))", line.split("|")[1])}
    assert named == set(FITS)
    for kind, fits, others in FITS.values():
        assert [found for found in fits if find_column_problem("snowflake", kind, found)] == [], kind
        assert [found for found in others if not find_column_problem("snowflake", kind, found)] == [], kind
