"""Everything a person reads is plain English: help texts are short, and the banned words are absent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from errata.cli.main import build_app

ROOT = Path(__file__).resolve().parents[3]
MOST_WORDS = 10


def _walk_commands(group: Any, path: str = "errata") -> Iterator[tuple[str, Any]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from _walk_commands(command, f"{path} {name}")


PROGRAM = dict(_walk_commands(typer.main.get_command(build_app())))


def _count_words(text: str) -> int:
    """Words without the default, which comes in parentheses."""
    return len(re.sub(r"\(.*?\)", "", text).split())


@pytest.mark.parametrize("name", sorted(set(PROGRAM) - {"errata"}))
def test_help_of_a_command_is_one_short_sentence(name: str) -> None:
    """The first paragraph of a help text has one sentence of at most ten words."""
    first = (PROGRAM[name].help or "").split("\n\n")[0]
    assert _count_words(first) <= MOST_WORDS
    assert re.fullmatch(r"[A-Z][^.]*(?:\.\w[^.]*)*\.", first.replace("\n", " "))


@pytest.mark.parametrize("name", sorted(PROGRAM))
def test_help_of_an_option_is_one_short_sentence(name: str) -> None:
    """An option or argument is explained in at most ten words, the default in parentheses."""
    texts = {parameter.name: parameter.help or "" for parameter in PROGRAM[name].params}
    assert {key: text for key, text in texts.items() if _count_words(text) > MOST_WORDS} == {}
    assert {key: text for key, text in texts.items() if not re.fullmatch(r"[A-Z].*\.", text)} == {}


def test_readme_is_short() -> None:
    """The README fits into 180 lines; details belong to the pages it links to."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180
