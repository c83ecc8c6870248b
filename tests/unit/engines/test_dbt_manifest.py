"""The manifest of dbt: which models and exposures read a table, and files that are not understood.

``support/dbt/manifest.json`` is what dbt 1.10 wrote for a small project, without dbt's own macros and docs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.engines.files.dbt_manifest import read_dbt_manifest
from errata.errors import NotFound, UsageError

REAL = Path(__file__).parents[2] / "support/dbt/manifest.json"
Change = Callable[[dict[str, Any]], object]


def changed(place: Path, change: Change) -> str:
    """A copy of the manifest with a change."""
    data = json.loads(REAL.read_text("utf-8"))
    change(data)
    place.write_text(json.dumps(data), "utf-8")
    return str(place)


def readers(file: str, *tables: str) -> dict[str, tuple[str, ...]]:
    """Names of what reads the tables, with what each reads."""
    return {one.node.name: one.reads for one in read_dbt_manifest(file).graph.list_readers(tables)}


def test_models_read_a_table_as_a_source_or_through_other_models():
    """Readers come in an order in which dbt could build them, exposures among them."""
    found = readers(str(REAL), "lake.ops.daily")
    assert found == {
        "stg_daily": ("lake.ops.daily",),
        "fct_load": ("model.analytics.stg_daily",),
        "load_dashboard": ("model.analytics.fct_load",),
        "rpt_week": ("model.analytics.fct_load",),
    }
    order = list(found)
    assert order.index("stg_daily") < order.index("fct_load") < min(map(order.index, ("rpt_week", "load_dashboard")))


def test_event_time_and_owner_are_those_of_dbt():
    """What the project of dbt says about its models and exposures."""
    graph = read_dbt_manifest(str(REAL)).graph
    assert graph.nodes["model.analytics.fct_load"].event_time == "day"
    assert graph.nodes["model.analytics.stg_daily"].event_time is None
    assert graph.nodes["exposure.analytics.load_dashboard"].data["owner"]["email"] == "ops@example.org"


def test_a_table_that_a_model_of_dbt_makes_is_found_too(tmp_path: Path):
    """What dbt builds and Errata corrects is read by reference, not as a source."""

    def rename(data: dict[str, Any]) -> None:
        data["nodes"]["model.analytics.fct_load"].update(database="lake", schema="ops", alias="load")

    file = changed(tmp_path / "m.json", rename)
    assert set(readers(file, "lake.ops.load")) == {"rpt_week", "load_dashboard"}


def test_a_database_of_another_name_is_matched_by_schema_and_table(tmp_path: Path):
    """The catalog of errata.yaml may have another name in dbt; one of the same name is taken before it."""

    def move(data: dict[str, Any]) -> None:
        data["sources"]["source.analytics.ops.daily"]["database"] = "warehouse"

    assert "stg_daily" in readers(changed(tmp_path / "m.json", move), "lake.ops.daily")

    def copy(data: dict[str, Any]) -> None:
        other = {**data["sources"]["source.analytics.crm.accounts"], "schema": "ops", "identifier": "daily"}
        data["sources"]["source.analytics.crm.accounts"] = other

    assert "dim_account" not in readers(changed(tmp_path / "n.json", copy), "lake.ops.daily")


def test_metrics_between_a_model_and_an_exposure_are_passed_through(tmp_path: Path):
    """An exposure of a metric uses the model that the metric is of."""

    def add(data: dict[str, Any]) -> None:
        on = {"depends_on": {"nodes": ["model.analytics.fct_load"]}}
        data["semantic_models"]["semantic_model.a.load"] = {"resource_type": "semantic_model", "name": "load", **on}
        on = {"depends_on": {"nodes": ["semantic_model.a.load"]}}
        data["metrics"]["metric.a.load"] = {"resource_type": "metric", "name": "load", **on}
        data["exposures"]["exposure.analytics.load_dashboard"]["depends_on"]["nodes"] = ["metric.a.load"]

    found = readers(changed(tmp_path / "m.json", add), "lake.ops.daily")
    assert found["load_dashboard"] == ("model.analytics.fct_load",)


def test_a_deep_graph_of_diamonds_is_walked_once(tmp_path: Path):
    """Forty layers that each read both models of the one before have a trillion paths."""

    def grow(data: dict[str, Any]) -> None:
        last = ["source.analytics.ops.daily"]
        for layer in range(40):
            names = [f"model.a.m{layer}_{n}" for n in range(2)]
            for name in names:
                data["nodes"][name] = {"resource_type": "model", "name": name, "depends_on": {"nodes": last}}
            last = names

    assert len(readers(changed(tmp_path / "m.json", grow), "lake.ops.daily")) == 84


@pytest.mark.parametrize(
    "change,said",
    [
        (
            lambda data: data["metadata"].update(dbt_schema_version="https://schemas.getdbt.com/dbt/manifest/v11.json"),
            r"m\.json has schema v11; expected manifest v12",
        ),
        (
            lambda data: data["metadata"].update(dbt_schema_version="https://schemas.getdbt.com/dbt/catalog/v1.json"),
            r"has schema https://schemas\.getdbt\.com/dbt/catalog/v1\.json; expected manifest v12",
        ),
        (lambda data: data.pop("metadata"), "has schema none; expected manifest v12"),
        (lambda data: data.pop("nodes"), r"m\.json \(dbt 1\.10\.23, schema v12\) has no nodes or no sources"),
        (
            lambda data: data["nodes"].pop("model.analytics.stg_daily"),
            r"m\.json \(dbt 1\.10\.23, schema v12\) is incomplete: nodes read model\.analytics\.stg_daily, which it",
        ),
    ],
)
def test_a_manifest_that_is_not_understood_is_refused_with_file_and_version(tmp_path: Path, change: Change, said: str):
    """Half a graph would leave readers out in silence."""
    with pytest.raises(UsageError, match=said) as refused:
        read_dbt_manifest(changed(tmp_path / "m.json", change))
    assert "dbt parse" in (refused.value.hint or "")


def test_a_missing_file_and_text_that_is_not_json_are_refused(tmp_path: Path):
    """The message names the file and how to write it."""
    with pytest.raises(NotFound, match=r"none\.json was not found") as refused:
        read_dbt_manifest(str(tmp_path / "none.json"))
    assert "dbt parse" in (refused.value.hint or "")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UsageError, match=r"bad\.json is not JSON"):
        read_dbt_manifest(str(tmp_path / "bad.json"))
