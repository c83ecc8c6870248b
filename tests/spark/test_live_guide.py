"""The guide on live pipelines, as written: its Python and its shell commands beside a frozen day."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import errata.live
from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from spark.test_freeze import FREEZES
from support.world import World

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/live-pipeline-beside-a-correction.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_guide_hold_a_job_off_exactly_where_a_run_has_frozen(
    make_world: Callable[..., World],
) -> None:
    """The day of the run is left alone, the other is written."""
    world = make_world(days=2, product=FREEZES)
    writing, catching, marking = blocks("python")
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
    assert [_shell(world, line) for line in blocks("console")[0].splitlines()] == [0, 0]
    assert _shell(world, "$ errata live check lake.fin.sales") == 3
    assert _shell(world, f"$ errata live write lake.fin.sales --partitions {frozen} -- false") == 3
    assert _shell(world, f"$ errata live write lake.fin.sales --partitions {free} -- sh -c 'exit 7'") == 7


def _shell(world: World, line: str) -> int:
    words = shlex.split(line.removeprefix("$ errata "))
    return main(["-C", str(world.root), *words], Terminal(out=io.StringIO(), err=io.StringIO(), interactive=False))
