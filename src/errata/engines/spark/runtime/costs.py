"""Cost of an attempt's Spark jobs, from Spark's status store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError

_WAIT_MS = 5000


def read_job_costs(context: Any, group: str) -> Mapping[str, int]:
    """Jobs, tasks, core time, rows and bytes read, bytes shuffled and written by a job group; empty if unknown."""
    tracker = context.statusTracker()
    scala = context._jsc.sc()  # noqa: SLF001  the status store has no Python side
    total = dict.fromkeys(
        ("jobs", "tasks", "core_ms", "cpu_ms", "input_bytes", "input_rows", "shuffle_bytes", "output_bytes"), 0
    )
    try:
        # events arrive asynchronously; without waiting, the last ones would be missing
        scala.listenerBus().waitUntilEmpty(_WAIT_MS)
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            total["jobs"] += 1
            for stage in info.stageIds if info else ():
                _add_stage(total, scala.statusStore().lastStageAttempt(stage))
    except Py4JError:
        # informational only; a chunk must not fail without them
        return {}
    return total


def _add_stage(total: dict[str, int], stage: Any) -> None:
    if stage.status().toString() == "SKIPPED":
        return
    total["tasks"] += stage.numCompleteTasks()
    total["core_ms"] += stage.executorRunTime()
    total["cpu_ms"] += stage.executorCpuTime() // 1_000_000
    total["input_bytes"] += stage.inputBytes()
    total["input_rows"] += stage.inputRecords()
    total["shuffle_bytes"] += stage.shuffleWriteBytes()
    total["output_bytes"] += stage.outputBytes()
