"""The guide on erased subjects, as typed: its keys and its commands work on a product that has them."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.cli.app.session import CliEnvironment as Terminal
from errata.cli.main import main
from errata.evidence.keys import generate_key_pair
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE, PROJECT

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/keep-erased-subjects-out.md"
KEY = '"${ERRATA_ERASURE_KEY}"'


def read_blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def merge_keys(product: str, keys: str) -> str:
    """The product file with the keys of a block of the page, under the names of the test's product."""
    named = keys.replace("account_id", "account")
    top = "".join(line for line in named.splitlines(keepends=True) if re.match(r"[a-z]+: [a-z]+$", line))
    target = re.search(r"^target:\n((?:  .*\n)+)", named, re.MULTILINE)
    source = re.search(r"^inputs:\n  transactions:\n((?:    .*\n)+)", named, re.MULTILINE)
    assert target
    assert source
    product = product.replace("  key: [day, account]\n", f"  key: [day, account]\n{target[1]}")
    return product.replace("    partition: day\n", f"    partition: day\n{source[1]}") + top


def test_the_keys_and_commands_of_the_guide_work(make_world: Callable[..., World], monkeypatch: Any) -> None:
    """A run with both blocks of keys leaves the subject out; `where` lists places, and `prove` refuses meanwhile."""
    project, subjects, policy = read_blocks("yaml")
    monkeypatch.setenv("ERRATA_ERASURE_KEY", "erasure.key")
    world = make_world(
        days=2, project=project, product=merge_keys(merge_keys(PRODUCT_FILE, subjects), policy), history=False
    )
    assert KEY in project
    assert project not in PROJECT
    generate_key_pair(world.root / "erasure.key")
    (world.root / "requests.txt").write_text("a0\n")
    commands = [
        shlex.split(line.removeprefix("$ errata ")) for block in read_blocks("console") for line in block.splitlines()
    ]
    assert [words[-1] for words in commands[:1]] == ["erasure.key"]
    answers: dict[str, Any] = {}
    codes: dict[str, int] = {}
    for words in commands[1:]:
        out, err = io.StringIO(), io.StringIO()
        terminal = Terminal(open_project=lambda *_, **__: world.client, out=out, err=err, interactive=False)
        name = next(word for word in words if word in ("add", "where", "redact", "prove"))
        codes[name] = main(["-C", str(world.root), *words, "--json"], terminal)
        answers[name] = json.loads(out.getvalue() or err.getvalue())
        assert "a0" not in out.getvalue() + err.getvalue()
    assert codes == {"add": 0, "where": 0, "redact": 0, "prove": 3}
    assert {place["kind"] for place in answers["where"]["places"]} == {"files"}
    run = world.to("published")
    shown = {row[1] for row in world.rows()}
    assert shown == {"hash of a1", "hash of a2"}
    sealed = world.ledger.runs.manifest(run)
    assert sealed.inputs[0].subjects == ("account",)


@pytest.mark.parametrize("word", ["left_out", "left_anti"])
def test_the_guide_leads_no_ids_into_tables_of_its_readers(word: str) -> None:
    """A second table of plain ids would be what the list is made to avoid."""
    assert word not in PAGE.read_text("utf-8")
