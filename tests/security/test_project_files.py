"""Hostile text in every name, place and rule of project files: refused at its line, or kept as plain data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errata.errors import ProjectFileError
from errata.model.product import Project
from errata.project import load_project
from security.corpus import PWNED, assert_harmless, label, some

# one key a line, so that a line is a place; @ is where the payload goes
ERRATA = """\
project: @
ledger: "sqlite:///.errata/ledger.db"
catalogs:
  lake: {type: jdbc, uri: "sqlite:///c.db", warehouse: "wh"}
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
"""
PRODUCT = """\
product: fin.sales
owner: finance
target:
  table: lake.fin.sales
  partition: {column: day, grain: day}
  key: [day]
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  raw: {files: "raw/day={day}/*.parquet", partition: day}
"""

NAMES = {
    "project": ("errata.yaml", ERRATA),
    "catalog": ("errata.yaml", ERRATA.replace("@", "test").replace("  lake: {type", "  @: {type")),
    "person": ("errata.yaml", ERRATA.replace("@", "test").replace("  ana:", "  @:")),
    "role": ("errata.yaml", ERRATA.replace("@", "test").replace("[requester, operator]", "[@]")),
    "catalog type": ("errata.yaml", ERRATA.replace("@", "test").replace("type: jdbc", "type: @")),
    "setting": ("errata.yaml", ERRATA.replace("@", "test") + "spark: {conf: {@: x}}\n"),
    "catalog property": ("errata.yaml", ERRATA.replace("@", "test").replace('"wh"', '"wh", properties: {@: x}')),
    "pool": ("errata.yaml", ERRATA.replace("@", "test") + "throttle: {pool: @}\n"),
    "signal": ("errata.yaml", ERRATA.replace("@", "test") + "health: [{name: @, command: [x], pause_above: 1}]\n"),
    "product": ("products/p.yaml", PRODUCT.replace("product: fin.sales", "product: @")),
    "table": ("products/p.yaml", PRODUCT.replace("table: lake.fin.sales", "table: @")),
    "part of a table": ("products/p.yaml", PRODUCT.replace("table: lake.fin.sales", "table: lake.@.x")),
    "partition column": ("products/p.yaml", PRODUCT.replace("{column: day,", "{column: @,")),
    "key column": ("products/p.yaml", PRODUCT.replace("key: [day]", "key: [@]")),
    "new column": ("products/p.yaml", PRODUCT.replace("key: [day]", "key: [day]\n  add_columns: {@: string}")),
    "new column's type": ("products/p.yaml", PRODUCT.replace("key: [day]", "key: [day]\n  add_columns: {x: @}")),
    "call": ("products/p.yaml", PRODUCT.replace('call: "transforms.sales:build"', "call: @")),
    "module": ("products/p.yaml", PRODUCT.replace('call: "transforms.sales:build"', "call: @:build")),
    "input": ("products/p.yaml", PRODUCT.replace("  raw:", "  @:")),
    "input table": ("products/p.yaml", PRODUCT.replace('files: "raw/day={day}/*.parquet"', "table: @")),
    "input partition": ("products/p.yaml", PRODUCT.replace("partition: day}\n", "partition: @}\n")),
    "checked column": ("products/p.yaml", PRODUCT + "checks: [{metric: nullValues, column: @, mustBe: 0}]\n"),
    "metric": ("products/p.yaml", PRODUCT + "checks: [{metric: @, mustBe: 0}]\n"),
    "threshold": ("products/p.yaml", PRODUCT + "checks: [{metric: rowCount, mustBe: @}]\n"),
    "classified column": ("products/p.yaml", PRODUCT + "classified: [@]\n"),
    "tolerance column": ("products/p.yaml", PRODUCT + "diff: {tolerance: {@: 1}}\n"),
    "look-back": ("products/p.yaml", PRODUCT.replace("partition: day}\n", "partition: day, lookback: @}\n")),
    "rollback window": ("products/p.yaml", PRODUCT + "publish: {rollback_window: @}\n"),
    "publication mode": ("products/p.yaml", PRODUCT + "publish: {mode: @}\n"),
    "an unknown key": ("products/p.yaml", PRODUCT + "@: 1\n"),
}
"""Names with a grammar: none of the corpus is one."""

TEXTS = {
    "owner": ("products/p.yaml", PRODUCT.replace("owner: finance", "owner: @")),
    "description": ("products/p.yaml", PRODUCT + "description: @\n"),
    "version": ("products/p.yaml", PRODUCT.replace("version: 2.0.0", "version: @")),
    "configuration": ("products/p.yaml", PRODUCT.replace("2.0.0}", "2.0.0, config: {x: @}}")),
    "configuration key": ("products/p.yaml", PRODUCT.replace("2.0.0}", "2.0.0, config: {@: x}}")),
    "consumer": ("products/p.yaml", PRODUCT + "consumers: [@]\n"),
    "check's name": ("products/p.yaml", PRODUCT + "checks: [{name: @, metric: rowCount, mustBe: 0}]\n"),
    "reconciliation's name": (
        "products/p.yaml", PRODUCT + 'reconcile: [{name: @, input: raw, source: "sum(a)", target: "sum(b)"}]\n'),
    "comparison's name": ("products/p.yaml", PRODUCT + 'compare: [{name: @, metric: "sum(a)", warn: 5%}]\n'),
    "valid value": (
        "products/p.yaml", PRODUCT + "checks: [{metric: invalidValues, column: a, validValues: [@], mustBe: 0}]\n"),
    "files": ("products/p.yaml", PRODUCT.replace('files: "raw/day={day}/*.parquet", partition: day', "files: @")),
    "locked partition": ("products/p.yaml", PRODUCT + "protect: {locked: [@]}\n"),
    "expression": ("products/p.yaml", PRODUCT + "checks: [{name: x, expression: @, mustBe: 0}]\n"),
    "pattern": (
        "products/p.yaml", PRODUCT + "checks: [{metric: invalidValues, column: a, pattern: @, mustBe: 0}]\n"),
    "row rule": (
        "products/p.yaml",
        PRODUCT.replace("day}\n", "day, rows: [{name: @, expression: x, action: quarantine}]}\n")),
    "tag": ("products/p.yaml", PRODUCT.replace('files: "raw/day={day}/*.parquet"', "table: lake.a.b, version: @")),
    "setting's value": ("errata.yaml", ERRATA.replace("@", "test") + "spark: {conf: {spark.x: @}}\n"),
    "master": ("errata.yaml", ERRATA.replace("@", "test") + "spark: {master: @}\n"),
    "ledger": ("errata.yaml", ERRATA.replace("@", "test").replace('"sqlite:///.errata/ledger.db"', "@")),
    "zone": ("errata.yaml", ERRATA.replace("@", "test") + 'throttle: {hours: ["22:00-06:00"], zone: @}\n'),
    "signal's address": ("errata.yaml", ERRATA.replace("@", "test") + "health: [{name: a, http: @, pause_above: 1}]\n"),
    "query of a signal": ("errata.yaml", ERRATA.replace("@", "test") + "health: [{name: a, sql: @, pause_above: 1}]\n"),
}  # fmt: skip
"""Free text, values and places: what can be seen is data, what cannot is refused."""


def _load(root: Path, place: tuple[str, str], payload: str) -> Project | ProjectFileError:
    name, text = place
    (root / "products").mkdir(exist_ok=True)
    files = {"errata.yaml": ERRATA.replace("@", "test"), "products/p.yaml": PRODUCT}
    # JSON text is a double-quoted YAML scalar: the payload arrives whole, whatever it holds
    files[name] = text.replace("@", json.dumps(payload))
    for file, content in files.items():
        (root / file).write_text(content, "utf-8")
    try:
        return load_project(root, environ={"HOME": "/from-the-environment"})
    except ProjectFileError as error:
        return error


def _judge(found: ProjectFileError, place: tuple[str, str]) -> None:
    name, text = place
    line = text[: text.index("@")].count("\n") + 1
    problems = found.fields["problems"]
    assert any(problem["file"] == name and problem["line"] == line for problem in problems), found.message
    assert len(found.message) < 5_000
    assert "/from-the-environment" not in found.message


@pytest.mark.parametrize("place", NAMES)
def test_no_payload_is_a_name(tmp_path: Path, place: str):
    """Every name has a strict grammar; what does not fit is refused with file and line."""
    for payload in some(place):
        if payload == "CON":  # a name like others, where no file is called after it
            continue
        found = _load(tmp_path, NAMES[place], payload)
        assert isinstance(found, ProjectFileError), (place, label(payload))
        _judge(found, NAMES[place])


@pytest.mark.parametrize("place", TEXTS)
def test_text_is_kept_as_it_is_or_refused_at_its_line(tmp_path: Path, place: str):
    """Text with nothing hidden in it is data; nothing is expanded, formatted or executed on the way."""
    kept = 0
    for payload in some(place):
        found = _load(tmp_path, TEXTS[place], payload)
        if isinstance(found, ProjectFileError):
            _judge(found, TEXTS[place])
            continue
        kept += 1
        told = repr(found) + repr(found.products) + found.ledger + repr(found.spark_conf) + found.spark_master
        # where a variable may stand, its value does
        assert "/from-the-environment" not in told or place in ("setting's value", "master", "files")
        assert not (tmp_path / PWNED).exists()
    if place in ("owner", "description", "configuration", "consumer", "check's name", "valid value"):
        assert kept > 2


@pytest.mark.parametrize("place", ["owner", "an unknown key", "configuration key"])
def test_a_refusal_shows_what_was_found_without_obeying_it(tmp_path: Path, place: str):
    """What errata check prints about hostile files can be shown on any terminal."""
    import io

    from errata.cli.app.session import CliEnvironment
    from errata.cli.main import main

    for payload in some(place):
        _load(tmp_path, {**NAMES, **TEXTS}[place], payload)
        out, err = io.StringIO(), io.StringIO()
        world = CliEnvironment(out=out, err=err, environ={}, width=100, interactive=False)
        code = main(("-C", str(tmp_path), "check"), world)
        assert_harmless(out.getvalue(), err.getvalue())
        assert code in (0, 1), (place, label(payload), out.getvalue(), err.getvalue())


def test_a_file_whose_name_is_hostile_is_named_harmlessly(tmp_path: Path):
    """File names are text of others, too."""
    import io

    from errata.cli.app.session import CliEnvironment
    from errata.cli.main import main

    _load(tmp_path, NAMES["project"], "test")
    (tmp_path / "products" / "\x1b[2J\u202eevil.yaml").write_text("product: 1\n")
    out, err = io.StringIO(), io.StringIO()
    code = main(
        ("-C", str(tmp_path), "check"), CliEnvironment(out=out, err=err, environ={}, width=100, interactive=False)
    )
    assert code == 1
    assert "\\x1b[2J\\u202eevil.yaml" in out.getvalue()
    assert_harmless(out.getvalue(), err.getvalue())
