"""What the documentation and the examples show is what Airflow accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "guides" / "airflow.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
EXAMPLES = Path(__file__).resolve().parents[1] / "src" / "airflow" / "providers" / "errata" / "example_dags"


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_guide_runs(block: str):
    """Each example of the guide defines its DAG or task without an error."""
    exec(compile(block, "docs/guides/airflow.md", "exec"), {})  # noqa: S102 (the guide is ours)


def test_the_guide_shows_every_operator():
    """Nobody has to read the source to find an operator or a sensor."""
    source = "\n".join(file.read_text(encoding="utf-8") for file in EXAMPLES.parent.rglob("*.py"))
    for name in re.findall(r"class (Errata\w+(?:Operator|Sensor))\(", source):
        assert name == "ErrataOperator" or f"`{name}`" in GUIDE


def test_the_daily_pipeline_and_the_backfill_share_no_pool_and_daily_comes_first():
    """The example DAGs load, and the backfill cannot take a slot of the daily pipeline."""
    bag = DagBag(str(EXAMPLES))
    assert bag.import_errors == {}
    daily, backfill = (list(bag.dags[name].tasks) for name in ("shop_daily", "shop_backfill"))
    assert not {one.pool for one in daily} & {one.pool for one in backfill}
    assert min(one.priority_weight for one in daily) > max(one.priority_weight for one in backfill)
    assert len(backfill) == 6
