"""The name of a partition stays one value wherever a template puts it."""

from __future__ import annotations

import sqlite3
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from errata.model.consumer.partition_text import (
    HOLE,
    bind_sql,
    fill_command,
    fill_redis_key,
    fill_redis_pattern,
    fill_url,
    is_in_glob_class,
    is_url_template,
    list_broken_words,
)

HOSTILE = (
    "*",
    "x' OR '1'='1",
    "../",
    "..",
    "a\nb",
    "[a-z]",
    "\\",
    "%s",
    "%2e%2e",
    "?",
    "{partition}",
    "--all",
    "^a",
    "",
)
values = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=("Cs",)), max_size=20))


@given(value=values, other=values)
@example(value="x' OR '1'='1", other="2026-01-17")
def test_a_value_in_sql_matches_only_itself(value: str, other: str):
    """A bound value selects the row that has it, whatever characters it consists of."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (name TEXT)")
        database.executemany("INSERT INTO t VALUES (?)", [(value,), (other,)])
        bound = bind_sql("SELECT name FROM t WHERE name = '{partition}' OR {partition} = name", value, "?")
        assert bound.text == "SELECT name FROM t WHERE name = ? OR ? = name"
        found = {name for (name,) in database.execute(bound.text, bound.parameters)}
    database.close()
    assert found == {value}


def test_percent_signs_of_a_statement_survive_a_driver_that_reads_them():
    """Every percent sign is doubled for drivers whose placeholder is %s, also without a hole."""
    bound = bind_sql("SELECT 7 % 2, '{partition}'", "5%")
    assert (bound.text % ("$1",), bound.parameters) == ("SELECT 7 % 2, $1", ("5%",))
    assert bind_sql("SELECT 7 % 2", "5%").text % () == "SELECT 7 % 2"


@given(value=values, other=values)
@example(value="*", other="2026-01-17")
@example(value="[a-z]", other="a")
@example(value="\\", other="*")
def test_a_value_in_a_redis_pattern_matches_only_itself(value: str, other: str):
    """Deleting the keys of a tenant called * leaves those of the others."""
    pattern = fill_redis_pattern("rev:{partition}:total", value)
    assert matches(pattern, f"rev:{value}:total")
    assert matches(pattern, f"rev:{other}:total") == (value == other)
    assert fill_redis_key("rev:{partition}:total", value) == f"rev:{value}:total"


@pytest.mark.parametrize(
    "template", ["a[{partition}]", "a[x{partition}", "[^]{partition}[{partition}]", "\\{partition}"]
)
def test_a_hole_inside_brackets_of_a_pattern_is_detected(template: str):
    """In brackets each character of a value would match by itself."""
    assert is_in_glob_class(template)
    assert not is_in_glob_class("\\[{partition}]:[ab]:{partition}*")


@given(value=values)
@example(value="..")
@example(value="a/../b")
@example(value="a&b=c#d?e")
def test_a_value_in_a_url_stays_in_its_place(value: str):
    """Host, number of segments and names in the query stay as declared; steps in the path are refused."""
    template = "https://bi.example/api/{partition}/refresh?day={partition}&full=1"
    if value in ("", ".", ".."):
        with pytest.raises(ValueError, match="cannot be a segment"):
            fill_url(template, value)
        return
    filled = fill_url(template, value)
    parts = urlsplit(filled)
    assert filled.isascii()
    assert filled.isprintable()
    assert (parts.netloc, parts.fragment) == ("bi.example", "")
    assert [unquote(segment) for segment in parts.path.split("/")] == ["", "api", value, "refresh"]
    assert parse_qs(parts.query, keep_blank_values=True) == {"day": [value], "full": ["1"]}


@pytest.mark.parametrize(
    "template",
    [
        "https://{partition}/x", "https://{partition}@bi.example/", "{partition}://bi.example", "https://bi.example:{partition}/",
        "https://bi.example/?{partition}", "https://bi.example/?a=1&{partition}=2", "https://bi.example/#{partition}",
    ],
)  # fmt: skip
def test_a_hole_elsewhere_in_a_url_is_detected(template: str):
    """Only segments of the path and values of the query may come from data."""
    assert not is_url_template(template)


@given(value=values)
def test_a_value_in_a_command_is_one_argument(value: str):
    """Spaces, quotes and line breaks do not make a second argument, and no option."""
    if "\0" in value:
        with pytest.raises(ValueError, match="cannot be an argument"):
            fill_command(["p", "--", HOLE], value)
    else:
        assert fill_command(["p", "--", HOLE, "z"], value) == ("p", "--", value, "z")


def test_a_value_that_looks_like_an_option_needs_the_end_of_options_before_it():
    """A tenant called --all does not switch on an option of the user's program."""
    with pytest.raises(ValueError, match="looks like an option"):
        fill_command(["./refresh.sh", HOLE, "--"], "--all")
    assert list_broken_words([HOLE, HOLE, f"--day={HOLE}", "x"]) == [0, 2]


def matches(pattern: str, text: str) -> bool:
    """Redis' own rule for patterns (stringmatchlen), written down independently."""
    if not pattern:
        return not text
    match pattern[0]:
        case "*":
            return any(matches(pattern[1:], text[n:]) for n in range(len(text) + 1))
        case "?":
            return bool(text) and matches(pattern[1:], text[1:])
        case "[":
            end = pattern.find("]")
            body = pattern[1:end] if end > 0 else pattern[1:]
            inverted = body.startswith("^")
            hit = bool(text) and any(_is_in(one, text[0]) for one in _list_ranges(body[inverted:]))
            return bool(text) and hit != inverted and matches(pattern[end + 1 :] if end > 0 else "", text[1:])
        case "\\" if len(pattern) > 1:
            return text[:1] == pattern[1] and matches(pattern[2:], text[1:])
        case letter:
            return text[:1] == letter and matches(pattern[1:], text[1:])


def _list_ranges(body: str) -> list[str]:
    found, n = [], 0
    while n < len(body):
        width = 3 if body[n + 1 : n + 2] == "-" and n + 2 < len(body) else 1
        found.append(body[n : n + width])
        n += width
    return found


def _is_in(span: str, letter: str) -> bool:
    return min(span[0], span[-1]) <= letter <= max(span[0], span[-1])
