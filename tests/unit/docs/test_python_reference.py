"""The reference of the Python API: every method has an example, and the example fits the method."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

import errata
from errata.client import Client

METHODS = {
    name: member
    for name, member in inspect.getmembers(Client)
    if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
}
FUNCTIONS = {"open": errata.open, "live_context": errata.live_context}


def example_of(member: Any) -> ast.Module:
    """The example of a docstring, parsed."""
    text, mark, example = (inspect.getdoc(member) or "").partition("\n\nExample: ")
    assert text
    assert mark, "the docstring ends without Example:"
    return ast.parse(example)


@pytest.mark.parametrize("name, member", [*METHODS.items(), *FUNCTIONS.items()])
def test_the_example_of_a_method_calls_it_as_its_signature_says(name: str, member: Any) -> None:
    """The docstring explains the method and ends with one line that calls it with arguments that it takes."""
    parsed = example_of(member)
    assert len(parsed.body) == 1
    if isinstance(member, property):
        assert any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(parsed))
        return
    calls = [node for node in ast.walk(parsed) if isinstance(node, ast.Call)]
    (call,) = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == name]
    given = [object()] * len(call.args)
    self_ = [] if name in FUNCTIONS else [object()]
    inspect.signature(member).bind(*self_, *given, **{str(word.arg): object() for word in call.keywords})


def test_every_method_of_the_client_has_its_section() -> None:
    """A method that moves to another class does not disappear from the page."""
    from unit.docs.test_docs import DOCS, GENERATE

    listed = {name for _, name, _ in GENERATE.client_methods()}
    assert listed == set(METHODS)
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in METHODS if f"\n### {name}\n" not in page] == []
