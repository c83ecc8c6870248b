"""`errata impact` as a graph for Graphviz."""

from __future__ import annotations

import re
from pathlib import Path

from unit.cli import samples
from unit.cli.sample_client import FakeClient, errata

GOLDEN = Path(__file__).parent / "goldens" / "impact-dot.txt"
SCOPE = ("impact", "fin.daily_revenue", "--from", "2026-01-01", "--to", "2026-01-03", "--dot")


def test_a_graph_is_drawn_as_agreed():
    """Every product, model, exposure and consumer is a node, and every reading an edge."""
    page = errata(*SCOPE).out
    assert page == GOLDEN.read_text("utf-8")
    nodes = set(re.findall(r'^  ("[^"]+") \[', page, re.MULTILINE))
    edges = re.findall(r'^  ("[^"]+") -> ("[^"]+")', page, re.MULTILINE)
    assert {name for edge in edges for name in edge} == nodes


def test_hostile_names_stay_inside_their_quotes():
    """A name from a file of others can neither end its label nor start a line."""
    view = samples.impact(consumers=('a"];\nevil -> "b\\',))
    page = errata(*SCOPE, client=FakeClient({"impact": view})).out
    (label,) = (line for line in page.splitlines() if "evil" in line and "label" in line)
    assert label == r'  "consumer a\"];\\nevil -> \"b\\" [label="a\"];\\nevil -> \"b\\", shape=note];'


def test_a_tree_keeps_its_guides_where_a_label_continues():
    """A long label continues below its beginning, beside the lines to what follows; no word is cut."""
    view = samples.impact(consumers=("first " + "word " * 20, "second\nerror: none"))
    page = errata(*SCOPE[:-1], client=FakeClient({"impact": view})).out.splitlines()
    start = next(n for n, line in enumerate(page) if line.startswith("├── first word"))
    assert page[start + 1].startswith("│   word")
    assert sum(line.count("word") for line in page) == 20
    assert page[start + 2] == "└── second\\nerror: none  (consumer)"
    assert all(len(line) <= 80 for line in page)


def test_a_graph_as_json_is_refused():
    """--json has the same content in a form for programs."""
    result = errata(*SCOPE, "--json")
    assert (result.code, "--dot together with --json was refused" in result.out + result.err) == (2, True)
