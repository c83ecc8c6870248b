"""The example DAGs in a real Airflow, on real tables, with real Spark; people decide in Errata, outside Airflow."""

from __future__ import annotations

import os
import signal

import pytest
from governed_shop import DAGS, ERRATA, Shop

pytestmark = [pytest.mark.slow]

BACKFILL = "shop_backfill"
DAILY = "shop_daily"


def test_a_correction_is_planned_decided_computed_judged_and_published(shop: Shop):
    """People approve and release in Errata; Airflow shows the decisions, waits, and publishes one event per range."""
    running = shop.start(BACKFILL, "2026-02-01")
    run_id = shop.approve()
    shop.release()
    found = running.finish()
    assert found["tasks"] == dict.fromkeys(["plan", "approved", "run", "validate", "released", "publish"], "success")
    status = shop.errata("status", run_id)[1]
    assert status["state"] == "published"
    assert [one["person"] for one in status["approvals"]] == ["bo"]
    assert [(one["person"], one["released_by"]) for one in status["publications"]] == [("airflow", "bo")]
    assert [(one["first"], one["last"], one["snapshot_id"]) for one in found["events"]] == [
        ("2026-01-05", "2026-01-08", status["publications"][0]["snapshot_id"])
    ]
    assert found["shown"], "no decision was shown in Airflow"
    ids = {value for key, value in found["xcoms"].items() if key.endswith("return_value")}
    assert ids == {run_id}
    assert found["xcoms"]["validate._link_ReportLink"].endswith(f"/{run_id}.html")
    assert (shop.home / "reports" / f"{run_id}.html").exists()

    shop.change_product("lineage_columns: true", "lineage_columns: true\nlate: {act: report}")
    undone = shop.start("shop_undo", "2026-02-02", {"run_id": run_id}, DAGS).finish()
    assert undone["tasks"] == {"undo": "success", "late": "success"}
    status = shop.errata("status", run_id)[1]
    assert status["state"] == "rolled_back"
    assert [(one["kind"], one["first"], one["last"], one["snapshot_id"]) for one in undone["events"]] == [
        ("rollback", "2026-01-05", "2026-01-08", status["publications"][-1]["snapshot_id"])
    ]


def test_a_task_whose_program_started_the_workers_ends_when_every_chunk_is_staged(shop: Shop):
    """The run is computed by another account, with Errata started by the program."""
    plan = shop.errata("plan", "shop.daily_sales", "--from=2026-01-05", "--to=2026-01-07", "--reason=r", person="ana")[
        1
    ]
    shop.approve()
    given = {"SHOP_ERRATA": ERRATA, "SHOP_PROJECT": str(shop.folder)}
    found = shop.start("shop_elsewhere", "2026-02-01", {"run_id": plan["run_id"]}, DAGS, **given).finish()
    assert found["tasks"] == {"compute": "success"}
    assert shop.errata("status", plan["run_id"])[1]["state"] == "staged"


def test_a_rejected_candidate_fails_its_task_once_with_the_findings(shop: Shop):
    """The gate's verdict is in the log and behind the link; the task is not retried, and nothing is published."""
    shop.change_product("warn: 40%, block: 60%", "warn: 1%, block: 2%")
    running = shop.start(BACKFILL, "2026-02-01")
    run_id = shop.approve()
    found = running.finish()
    assert found["tasks"]["validate"] == "failed"
    assert found["tries"]["validate"] == 1
    assert found["tasks"]["publish"] == "upstream_failed"
    assert "block: sum(gross) 2026-01-08" in found["log"]
    assert found["xcoms"]["validate._link_ReportLink"].endswith(f"/{run_id}.html")
    assert shop.errata("status", run_id)[1]["publications"] == []


def test_a_worker_killed_while_it_computes_is_replaced_by_the_next_attempt(shop: Shop):
    """After kill -9 the task is retried and continues the same run, to the end."""
    running = shop.start(BACKFILL, "2026-02-01")
    run_id = shop.approve()
    os.kill(shop.find_worker(run_id), signal.SIGKILL)
    shop.release()
    found = running.finish()
    assert found["tasks"]["publish"] == "success"
    assert found["tries"]["run"] == 2
    assert "was ended by signal 9" in found["log"]
    runs = shop.errata("status")[1]["runs"]
    assert [(one["run_id"], one["state"]) for one in runs] == [(run_id, "published")]


def test_a_dag_run_that_starts_again_plans_nothing_twice(shop: Shop):
    """Airflow itself is killed with its worker; the same DAG run finds its plan, and the one approval still counts."""
    running = shop.start(BACKFILL, "2026-02-01")
    run_id = shop.approve()
    worker = shop.find_worker(run_id)
    running.kill()
    os.kill(worker, signal.SIGKILL)
    again = shop.start(BACKFILL, "2026-02-01")
    shop.release()
    found = again.finish()
    assert found["tasks"]["publish"] == "success"
    runs = shop.errata("status")[1]["runs"]
    assert [(one["run_id"], one["state"]) for one in runs] == [(run_id, "published")]


def test_the_daily_pipeline_waits_for_a_correction_no_longer_than_it_declares(shop: Shop):
    """A frozen day is written when the limit is over, other days at once; the correction then conflicts, unretried."""
    shop.change_product(
        "publish: {mode: replace_partitions,", "publish: {mode: replace_partitions, on_live_write: freeze,"
    )
    limit = 20
    backfill = shop.start(BACKFILL, "2026-02-01")
    run_id = shop.approve()
    shop.wait_for("validated")
    assert shop.errata("status", run_id)[1]["freeze"], "the correction froze nothing"

    other = shop.start(DAILY, "2026-01-12", SHOP_DAILY_LIMIT=str(limit)).finish()
    written = shop.start(DAILY, "2026-01-06", SHOP_DAILY_LIMIT=str(limit)).finish()
    assert other["tasks"]["write_day"] == written["tasks"]["write_day"] == "success"
    assert "writing without a lease" in written["log"]
    # the program starts once more for each try at the lease, and a look takes as long as such a start
    unhindered = other["seconds"]["write_day"]
    assert limit <= written["seconds"]["write_day"] < limit + 3 * unhindered
    assert "waiting until" not in other["log"]

    shop.release()
    found = backfill.finish()
    assert found["tasks"]["publish"] == "failed"
    assert found["tries"]["publish"] == 1
    assert "publish-conflict" in found["log"]
