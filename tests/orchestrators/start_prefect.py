"""Starts the Prefect flow of the guide in this process, and prints what Prefect recorded about it as JSON."""

import json
import sys

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.sorting import TaskRunSort
from prefect_correction import correct


def main(arguments: str) -> None:
    """One flow on the temporary server, whose record of the tasks is read before it ends."""
    state = correct(**json.loads(arguments), return_state=True)
    with get_client(sync_client=True) as client:
        here = FlowRunFilter(id=FlowRunFilterId(any_=[state.state_details.flow_run_id]))
        tasks = [
            (one.name.rpartition("-")[0], one.state)
            for one in client.read_task_runs(flow_run_filter=here, limit=200, sort=TaskRunSort.EXPECTED_START_TIME_ASC)
        ]
    failed = {name: one.message for name, one in tasks if one.is_failed()}
    steps = [name for name, one in tasks if one.is_completed()]
    sys.stdout.write(json.dumps({"success": state.is_completed(), "steps": steps, "failed": failed}))


main(sys.argv[1])
