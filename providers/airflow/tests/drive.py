"""Runs one DAG by ``dag.test()`` and writes what became of its tasks; a process of its own, which can be killed."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.models.hitl import HITLDetail
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("dag")
    asked.add_argument("folder")
    asked.add_argument("--conf", default="{}")
    asked.add_argument("--date", required=True)
    asked.add_argument("--result", required=True)
    given = asked.parse_args()
    bag = DagBag(given.folder)
    assert not bag.import_errors, bag.import_errors
    date = datetime.fromisoformat(given.date)
    # the same date gives the same DAG run, also in another process
    run = bag.dags[given.dag].test(run_after=date, logical_date=date, run_conf=json.loads(given.conf))
    with create_session() as session:
        tasks = run.get_task_instances(session=session)
        found = {
            "state": str(run.state),
            "tasks": {ti.task_id: str(ti.state) for ti in tasks},
            "tries": {ti.task_id: ti.try_number for ti in tasks},
            "seconds": {ti.task_id: ti.duration for ti in tasks},
            "events": [
                event.extra for event in session.scalars(
                    select(AssetEvent).where(AssetEvent.source_run_id == run.run_id).order_by(AssetEvent.id)
                )
            ],
            "shown": [one.subject for one in session.scalars(select(HITLDetail))],
            "xcoms": {
                f"{one.task_id}.{one.key}": one.value
                for one in session.scalars(select(XComModel).where(XComModel.run_id == run.run_id))
            },
        }  # fmt: skip
    Path(given.result).write_text(json.dumps(found, default=str), encoding="utf-8")


if __name__ == "__main__":
    main()
