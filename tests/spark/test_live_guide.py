"""The guide on live pipelines, as written: its Python, its Airflow task and its shell commands beside a frozen day."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import errata.live
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from spark.test_freeze import FREEZES
from support.world import World

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/live-pipeline-beside-a-correction.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_guide_hold_a_job_off_exactly_where_a_run_has_frozen(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The day of the run is left alone, the other is written; Airflow gives its slot back."""
    world = make_world(days=2, product=FREEZES)
    writing, catching, marking, airflow = blocks("python")
    frozen, free = world.days
    run = world.to("approved", frozen)
    with errata.live.writing(world.client, "lake.fin.sales", [free]):
        pass
    world.client.run(run, as_="ana")
    known: dict[str, Any] = {"project": str(world.root), "spark": world.spark}
    exec(writing, known)  # noqa: S102  what the page says
    assert ("2026-01-02", "late") in [row[:2] for row in world.rows()]
    written: list[str] = []
    exec(catching, known | {"errata": errata, "days": list(world.days), "write": written.extend})  # noqa: S102  what the page says
    assert written == [free]
    exec(marking, known | {"errata": errata, "days": [free], "write": written.extend})  # noqa: S102  what the page says
    assert written == [free, free]
    load, again = _task(airflow, world, written, monkeypatch)
    load(free)
    assert written == [free, free, free]
    with pytest.raises(again):
        load(frozen)
    assert [_shell(world, line) for line in blocks("console")[0].splitlines()] == [0, 0]
    assert _shell(world, "$ errata live check lake.fin.sales") == 3
    assert _shell(world, f"$ errata live write lake.fin.sales --partitions {frozen} -- false") == 3
    assert _shell(world, f"$ errata live write lake.fin.sales --partitions {free} -- sh -c 'exit 7'") == 7


def _shell(world: World, line: str) -> int:
    words = shlex.split(line.removeprefix("$ errata "))
    return main(["-C", str(world.root), *words], Terminal(out=io.StringIO(), err=io.StringIO(), interactive=False))


def _task(
    source: str, world: World, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Callable[[str], None], type[Exception]]:
    """The task of the page, with an Airflow that runs what it is given."""

    class AirflowRescheduleException(Exception):
        pass

    tasks: list[Callable[[str], None]] = []

    def task(**_: Any) -> Callable[[Any], Any]:
        return lambda function: tasks.append(function) or (lambda _day: None)

    stubs = {
        "airflow.sdk": {"dag": lambda **_: lambda function: function, "task": task},
        "airflow.exceptions": {"AirflowRescheduleException": AirflowRescheduleException},
        "pendulum": {"now": lambda _: datetime.now(UTC)},
        "jobs.daily_sales": {"write_day": written.append},
    }
    for name, members in stubs.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    for parent in ("airflow", "jobs"):
        monkeypatch.setitem(sys.modules, parent, SimpleNamespace())  # type: ignore[arg-type]
    exec(source.replace("/srv/errata/finsight", str(world.root)), {})  # noqa: S102  what the page says
    return tasks[0], AirflowRescheduleException
