"""A table whose partitions are named by an attacker, corrected, published and taken back: the values stay values."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, NestedField, StringType

from errata.cli.app.session import CliEnvironment as Outside
from errata.cli.main import main
from errata.gate.diff.kept_diff import KEPT_ROWS
from errata.model.partition import value_to_text
from errata.report.page import render_page
from errata.text.escape import is_plain
from errata.wiring import build_client, open_workspace
from errata.workspace import Engines, Workspace
from security.conftest import PROJECT, FailingPort, Kept, make_project
from security.corpus import (
    CONTROLS,
    FORMULAS,
    LOOKALIKES,
    MARKUP,
    PATHS,
    PWNED,
    QUOTES,
    SHELL,
    TEMPLATES,
    assert_harmless,
    files_under,
    hidden_in,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXTRA = (
    "${env:ERRATA_CANARY}",
    "${spark.app.name}",
    "null",
    '"q"',
    "a,b",
    " eu",
    "eu",
    "eu\x1f1\x1f9\x1f=us\nforged",
    "é" * 30,
)
VALUES = tuple(
    dict.fromkeys(
        one
        for one in (*QUOTES, *SHELL, *TEMPLATES, *PATHS, *CONTROLS, *LOOKALIKES, *FORMULAS, *MARKUP, *EXTRA)
        if "\x00" not in one
    )
)
LISTED = [one for one in VALUES if is_plain(one) and "${" not in one]
KEPT = str(KEPT_ROWS)  # so that the rows are compared once for all pages
ONE_CHUNK = f"{PROJECT}chunk_bytes: 1GiB\n"
PRODUCT = f"""
product: fin.regions
owner: finance
target: {{table: lake.fin.regions, partition: {{column: region, grain: value}}, key: [region, account]}}
transform: {{call: "transforms.sales:build", version: 2.0.0}}
inputs:
  raw: {{table: lake.fin.raw, partition: region}}
checks:
  - metric: missingValues
    column: region
    missingValues: {json.dumps(LISTED, ensure_ascii=False)}
    per: run
    mustBe: {2 * len(LISTED)}
"""


class Lake:
    """The project and an independent look at its table."""

    def __init__(self, root: Path, workspace: Workspace, run: str = "") -> None:
        self.root, self.workspace, self.run = root, workspace, run
        self.client = build_client(workspace)

    def rows(self) -> list[tuple[str, str, Decimal]]:
        with closing(_catalog(self.root)) as catalog:
            found = catalog.load_table("fin.regions").scan().to_arrow().to_pylist()
        return sorted((row["region"], row["account"], row["gross"]) for row in found)

    def errata(self, *arguments: str, person: str = "bo") -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        world = Outside(
            open_project=lambda *_, **__: Kept(self.client), out=out, err=err, interactive=False, width=100,
            environ={"ERRATA_USER": person},
        )  # fmt: skip
        code = main(arguments, world)
        return code, out.getvalue(), err.getvalue()


def _catalog(root: Path) -> Any:
    place = root / ".errata"
    return load_catalog("lake", type="sql", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}/warehouse")


def _expected(times: int) -> list[tuple[str, str, Decimal]]:
    return sorted((one, f"a{n}", Decimal(times * (n + 1))) for one in VALUES for n in range(2))


@pytest.fixture(scope="module")
def lake(base_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A validated correction of every hostile partition; the history is twice as high as it should be."""
    root = make_project(
        tmp_path_factory.mktemp("outside") / "project", project=ONE_CHUNK, products={"regions": PRODUCT}
    )
    with closing(_catalog(root)) as catalog:
        catalog.create_namespace("fin")
        schema = Schema(
            NestedField(1, "region", StringType()), NestedField(2, "account", StringType()),
            NestedField(3, "gross", DecimalType(12, 2)),
        )  # fmt: skip
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "region"))
        for name, times in (("raw", 1), ("regions", 2)):
            table = catalog.create_table(f"fin.{name}", schema, partition_spec=spec, properties={"format-version": "2"})
            rows = [dict(zip(("region", "account", "gross"), row, strict=True)) for row in _expected(times)]
            table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    os.environ["ERRATA_CANARY"] = "from-the-environment"
    lake = Lake(root, open_workspace(root, spark=base_spark, narrate=lambda _: None))
    with lake.client as client:
        assert lake.rows() == _expected(2)
        plan = client.plan(
            "fin.regions", partitions=[value_to_text(one) for one in VALUES], reason="doubled", as_="ana"
        )
        client.approve(plan.id, digest=plan.digest, as_="bo")
        client.run(plan.id, as_="ana")
        client.validate(plan.id, as_="ana")
        lake.run = str(plan.id)
        yield lake
    del os.environ["ERRATA_CANARY"]


def test_values_are_corrected_as_values_and_nothing_else_happens(lake: Lake):
    """Every partition is published and taken back by its own name; no name is a path, a pattern, SQL or a template."""
    before = files_under(lake.root.parent)
    refused = _failing_publishes(lake)
    assert refused
    assert lake.rows() == _expected(2)
    code, out, err = lake.errata("publish", lake.run, "--yes")
    assert code == 0, err
    assert_harmless(out, err)
    assert lake.rows() == _expected(1)
    _look(lake)
    code, out, err = lake.errata("rollback", lake.run, "--yes", "--reason", "bank asks to wait")
    assert code == 0, err
    assert lake.rows() == _expected(2)
    made = files_under(lake.root.parent) - before
    assert not {path for path in made if not path.startswith(str(lake.root / ".errata"))}
    assert not any(PWNED in Path(path).name for path in made)
    assert lake.client.audit_verify().ok


def _look(lake: Lake) -> None:
    """Every page about these partitions can be shown anywhere."""
    for words in (("status", lake.run), ("show", lake.run), ("diff", lake.run, "--sample", KEPT), ("audit", "log")):
        for options in ((), ("--json",)):
            code, out, err = lake.errata(*words, *options)
            assert code == 0, err
            assert_harmless(out, err)
    for one in ("a'b", "..", "\x1b[2J\x1b]0;owned\x07", "${env:ERRATA_CANARY}", "a,b"):
        code, out, err = lake.errata("why", "--", "lake.fin.regions", one)
        assert code == 0, err
        assert_harmless(out, err)
    html = render_page(lake.client.report(lake.run, sample=int(KEPT)))
    assert not hidden_in(html)
    assert "<script>" not in html
    assert "from-the-environment" not in html


def _failing_publishes(lake: Lake) -> int:
    """A dependency that fails while publishing: a sentence, no trace, no half of anything, and it can be repeated."""
    causes = [
        OSError("disk on fire /secret/path"),
        RuntimeError("boom"),
        ConnectionError("catalog gone"),
        TimeoutError(),
    ]
    for cause in causes:
        engines = cast("Engines", FailingPort(lake.workspace.engines, "publishing", cause))
        broken = Lake(lake.root, dataclasses.replace(lake.workspace, engines=engines), lake.run)
        code, out, err = broken.errata("publish", lake.run, "--yes")
        assert code != 0
        assert_harmless(out, err)
        assert lake.client.status(lake.run).state in ("validated", "publishing")
        assert lake.rows() == _expected(2)
        assert lake.client.audit_verify().ok
    return len(causes)
