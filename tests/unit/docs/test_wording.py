"""Everything a person reads is plain English: help texts are short, and the banned words are absent."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from errata.cli.main import build_app

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "errata"
EXAMPLES = ROOT / "examples"
BENCHMARKS = ROOT / "benchmarks"
TEMPLATES = SOURCE / "project" / "templates"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for folder in (ROOT / "docs", EXAMPLES, TEMPLATES) for page in sorted(folder.rglob("*.md"))),
]
SCRIPTS = sorted([*EXAMPLES.rglob("*.py"), *BENCHMARKS.rglob("*.py"), *TEMPLATES.rglob("*.py.txt")])
PROJECT_FILES = sorted([*EXAMPLES.rglob("*.yaml"), *TEMPLATES.rglob("*.yaml")])
MOST_WORDS = 10

BANNED = {
    r"who(m)?ever": "anyone who, the person who",
    r"of (now|then)": "current, earlier, at that time",
    r"and not else|[;,] else": "otherwise",
    r"stands?(?! ?-?alone)": "is, appears, replaces",
    r"amounts? to": "is",
    r"told": "shown, reported, determined",
    r"said": "reported, explicit",
    r"by that(?=[.;,:)]|$)": "thereby, or name the act",
    r"mend(s|ed|ing)?": "fix",
    r"so many": "number of, this many",
    r"(held|holds?|holding) (\S+ ){0,4}against": "compared with, checked against",
    r"nobody counted": "is missing",
    r"over since": "ended at, expired at",
    r"under way": "in progress, active",
    r"anew": "again",
    r"spoil(s|t|ed)?": "corrupt",
    r"(take|takes|took|taken) back": "roll back, restore",
    r"the truth": "current",
    r"deeds?": "action, decision",
    r"go(es)? on": "continue",
    r"with a chunk in hand": "computing",
    r"belongs? into": "belongs to, goes into",
    r"by another way": "in another way, separately",
    r"says? where to(?=[.;,:)]|$)": "names the place",
    r"the other 1": "the other one",
}
"""What we do not write, and what we write instead."""

BUNDLED = SOURCE / "evidence" / "verifier.py"
"""Every evidence bundle has a copy of this file, and its digest is published: its text stays as it is."""


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


def _read_prose(page: Path) -> str:
    """A page without code: what blocks show is written elsewhere, and names in backticks are promises."""
    text = re.sub(r"^[ ]*```.*?^[ ]*```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "``", text)


def _read_texts(module: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, comments and messages of a module, with their lines."""
    source = module.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, re.sub(r"^\s*(?:>>>|\.\.\.|').*$|``.*?``", "", node.value, flags=re.MULTILINE)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _find_banned(text: str) -> list[str]:
    flat = " ".join(text.split())
    return [
        f"{flat[max(0, found.start() - 30) : found.end() + 20]!r}: say {instead}"
        for pattern, instead in BANNED.items()
        for found in re.finditer(rf"(?<![\w.])(?:{pattern})(?!\w)", flat, re.IGNORECASE)
    ]


def _find_banned_in_module(module: Path) -> dict[int, list[str]]:
    return {line: banned for line, text in _read_texts(module) if (banned := _find_banned(text))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_plain_words(page: Path) -> None:
    """A page has none of the words that we do not use."""
    assert _find_banned(_read_prose(page)) == []


@pytest.mark.parametrize("package", sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}))
def test_source_uses_plain_words(package: str) -> None:
    """Docstrings, comments and messages have none of the words that we do not use."""
    start = SOURCE / package
    modules = [start] if start.is_file() else sorted(start.rglob("*.py"))
    found = {module.relative_to(ROOT): _find_banned_in_module(module) for module in modules if module != BUNDLED}
    assert {module: banned for module, banned in found.items() if banned} == {}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shipped_scripts_use_plain_words(script: Path) -> None:
    """What examples, benchmarks and the starter print and explain has none of the words that we do not use."""
    assert _find_banned_in_module(script) == {}


@pytest.mark.parametrize("file", PROJECT_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shipped_project_files_use_plain_words(file: Path) -> None:
    """Descriptions and comments in the project files of examples and starter are plain English too."""
    assert _find_banned(file.read_text(encoding="utf-8")) == []


def test_banned_words_are_found() -> None:
    """The check above would notice them."""
    assert len(_find_banned("Whoever published is told; the run goes on by that.")) == 4
    assert _find_banned("The verifier stands alone, and someone else holds the key.") == []
