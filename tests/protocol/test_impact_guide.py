"""The guide on what depends on a correction, as typed."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from support.graph_world import GraphWorld

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/find-what-depends.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """What the page has in this language, in its order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_command_of_the_guide_prints_the_tree_of_the_guide(tmp_path: Path) -> None:
    """On a project whose files say what the page shows of them."""
    *products, project = blocks("yaml")
    shutil.copytree(ROOT / "tests/support/dbt", tmp_path / "analytics/target")
    world = GraphWorld.make(tmp_path, project=project)
    for place, shown in zip(re.findall(r"`(products/\S+)`:", PAGE), products, strict=True):
        assert shown in (tmp_path / place).read_text("utf-8")

    def open_here(_directory: Any, **_options: Any) -> Any:
        return world.client

    (line,) = (line for block in blocks("console") for line in block.splitlines())
    out, err = io.StringIO(), io.StringIO()
    words = ["-C", str(tmp_path), *shlex.split(line.removeprefix("$ errata "))]
    code = main(words, Terminal(open_project=open_here, out=out, err=err, interactive=False))
    assert (code, err.getvalue()) == (0, "")
    assert out.getvalue() == blocks("text")[0]
