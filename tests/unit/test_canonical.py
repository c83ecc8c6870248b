"""Canonical bytes are RFC 8785, whichever encoder writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from errata.canonical import LEFT_OUT, canonical_bytes, from_plain, to_plain
from errata.model.manifest import ExpectedFile
from errata.model.partition import Grain

text = st.text(st.characters(codec="ascii")) | st.text()
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=20
)
plain_values = st.recursive(
    st.integers(-(10**16), 10**16).filter(lambda n: abs(n) < 2**53) | st.text(st.characters(codec="ascii")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii")), inner),
)


def outcome(encode: Any, value: Any) -> bytes | str:
    try:
        return encode(value)
    except (ValueError, TypeError) as error:
        return type(error).__name__


@given(values | plain_values)
def test_the_bytes_are_those_of_the_standard(value: Any):
    """The quick way and the standard's own agree on every value that both can write, and on what neither can."""
    assert outcome(canonical_bytes, value) == outcome(rfc8785.dumps, value)


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), 10**15, 10**16, 0.1, -0.0, 1e21, '\x7f\x00\x1f\\"/', "é", "\U0001f600", []]
)
def test_edges_are_those_of_the_standard(value: Any):
    """Numbers that JSON readers would round, floats, control characters, and text beyond ASCII."""
    assert outcome(canonical_bytes, {"k": value}) == outcome(rfc8785.dumps, {"k": value})


def test_what_is_no_json_is_refused():
    """Money is text by the time it comes here."""
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical_bytes({"usd": Decimal("1.10")})


def test_values_of_the_model_become_objects():
    """Dataclasses, enums and tuples."""
    file = ExpectedFile("s3://a", 3, "data")
    assert canonical_bytes((file, Grain.DAY)) == b'[{"content":"data","path":"s3://a","rows":3},"day"]'


@dataclass(frozen=True)
class Grown:
    """A value that got fields after it was first written."""

    name: str
    more: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    named: dict[str, int] = field(default_factory=dict, metadata=LEFT_OUT)
    old: tuple[str, ...] = ()


def test_a_field_that_came_later_is_left_out_until_it_is_used():
    """So digests of values that do not use it are those of before, and what was left out reads back as the default."""
    assert canonical_bytes(Grown("a")) == b'{"name":"a","old":[]}'
    assert to_plain(Grown("a", ("b",), {"c": 1})) == {"name": "a", "more": ["b"], "named": {"c": 1}, "old": []}
    for one in (Grown("a"), Grown("a", ("b",)), Grown("a", named={"c": 1})):
        assert from_plain(Grown, to_plain(one)) == one
