"""README and tutorial use at most twelve words of ours, the glossary stays short, and pages use today's names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = (ROOT / "docs/concepts/glossary.md").read_text(encoding="utf-8")
FIRST, MORE = (
    re.findall(r"^\| ([a-z][a-z -]*) \|", section, re.MULTILINE)[1:]
    for section in re.split(r"^## ", GLOSSARY, flags=re.MULTILINE)[1:]
)
CODE_TABLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("Words that only the code needs:")[2]
OF_CODE = [
    word
    for entry in re.findall(r"^\| ([a-z][a-z ,]*) \|", CODE_TABLE.partition("\n\nWrite")[0], re.MULTILINE)[1:]
    for word in entry.split(", ")
]
MOST_FIRST, MOST_ALL = 12, 33
START_PAGES = ("README.md", "docs/tutorial.md")
SHOWN = [
    ROOT / "README.md",
    *sorted(
        path
        for folder in ("docs", "examples", "src/errata/project/templates")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".md", ".yaml") and "adr" not in path.parts
    ),
    *sorted(path for folder in ("cli", "evidence", "report") for path in (ROOT / "src/errata" / folder).rglob("*.py")),
]
LOOKS = ("status", "runs", "history", "why", "audit log")
AS_USUAL = ("part", "adopt")
"""Words that the pages use in their common meaning: a part of a page, to adopt a table."""


def read_prose(page: str) -> str:
    """A page with its pictures, without commands and their output, names in backticks and addresses."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    text = blocks.sub(lambda block: block[2] if block[1] == "text" else "", text)
    return " ".join(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text).split())


def uses(text: str, word: str) -> bool:
    """Whether a text has the word, also in the plural or as a participle."""
    return bool(re.search(rf"(?<![\w-]){word}(s|es|ed|ned)?(?!\w)", text, re.IGNORECASE))


def test_the_glossary_is_short():
    """Twelve words to start with, and not many more; each is explained once."""
    assert len(FIRST) <= MOST_FIRST
    assert len(FIRST) + len(MORE) <= MOST_ALL
    assert len({*FIRST, *MORE}) == len(FIRST) + len(MORE)


@pytest.mark.parametrize("page", START_PAGES)
def test_the_first_pages_use_only_the_first_words(page: str):
    """Someone who reads README and tutorial meets no other word of ours, neither of guides nor of the code."""
    prose = read_prose(page)
    assert [word for word in (*MORE, *OF_CODE) if word not in AS_USUAL and uses(prose, word)] == []


def test_every_first_word_is_needed():
    """A word that neither README nor tutorial uses is not one of the twelve."""
    prose = " ".join(map(read_prose, START_PAGES))
    assert [word for word in FIRST if not uses(prose, word) and not uses(prose, word.split()[-1])] == []


@pytest.mark.parametrize("command", LOOKS)
def test_the_tutorial_says_which_command_looks_back_at_what(command: str):
    """One table has a question for each command that looks back."""
    table = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8").partition("## Look back")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if re.search(rf"\| `errata {command}", line)]
    assert len(rows) == 1
    assert "?" in rows[0]


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_and_examples_use_the_names_of_today(page: Path):
    """The public key is the file that keygen writes next to the private one; chunks have a section of their own."""
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"\berrata\.pub\b", text)
    assert not re.findall(r"^\s*chunk_bytes\s*:", text, re.MULTILINE)
    assert not re.findall(r"\bhold: \d+m\b", text)
