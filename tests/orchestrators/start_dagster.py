"""Starts the Dagster job of the guide in this process, and prints what Dagster recorded about it as JSON."""

import json
import sys

import dagster as dg
from dagster_correction import correct


def main(config: str) -> None:
    """One job on an instance that keeps nothing."""
    with dg.DagsterInstance.ephemeral() as instance:
        done = correct.execute_in_process(json.loads(config), instance=instance, raise_on_error=False)
    failed = {
        event.step_key: event.step_failure_data.user_failure_data.description
        for event in done.all_events
        if event.is_step_failure
    }
    shown = [
        {
            "asset": event.asset_key.to_user_string(),
            **{key: one.value for key, one in event.materialization.metadata.items()},
        }
        for event in done.all_events
        if event.is_step_materialization
    ]
    steps = [event.step_key for event in done.all_events if event.is_step_success]
    sys.stdout.write(json.dumps({"success": done.success, "steps": steps, "failed": failed, "shown": shown}))


main(sys.argv[1])
