"""One byte string, one meaning: what is hashed cannot be read in two ways, and no reader changes a digit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from errata.canonical import canonical_bytes, digest_of, parse_strict_json, sha256
from errata.cli.app.session import to_json_text
from errata.errors import UsageError
from errata.ledger import Ledger
from errata.model.audit import Actor
from security.corpus import hidden_in

ANA = Actor("ana", "ana", "host")


@pytest.mark.parametrize(
    "content",
    [
        b'{"reason":"a","reason":"b"}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":"\\ud800"}',
        b'{"\\udfff":1}',
        b'{"a":1}{"a":2}',
        b'{"a":1',
        b'{"a":01}',
        b"{'a':1}",
        b'\xff{"a":1}',
        b'\xef\xbb\xbf{"a":1}',
        b"",
    ],
)
def test_bytes_that_readers_read_differently_are_no_manifest(tmp_path: Any, content: bytes):
    """A key twice, a number that is none, half of a pair, a byte-order mark: refused before anything is recorded."""
    with pytest.raises(ValueError):  # noqa: PT011  json and unicode errors alike
        parse_strict_json(content)
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        with pytest.raises(UsageError):
            ledger.runs.record(
                "bf-1", content, product="p", table="t", partitions=["a"], chunks=[], parts={}, actor=ANA
            )
        assert not ledger.runs.list()


def test_the_digest_is_of_the_stored_bytes_and_of_nothing_made_from_them(tmp_path: Any):
    """Bytes with other spaces are another manifest, even when they mean the same."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        for n, content in enumerate((b'{"reason":"x"}', b'{"reason": "x"}')):
            run, already = ledger.runs.record(
                f"bf-{n}", content, product="p", table="t", partitions=["a"], chunks=[], parts={}, actor=ANA
            )
            assert not already
            assert run.manifest_digest == sha256(content)
            assert ledger.runs.manifest_bytes(run.run_id) == content


@pytest.mark.parametrize(
    "one,other",
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1.0}, {"a": 1}),
        ({"a": -0.0}, {"a": 0}),
        ({"a": 1e2}, {"a": 100}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
    ],
)
def test_the_same_value_has_the_same_bytes(one: Any, other: Any):
    """Order of keys and spelling of numbers are not part of a value."""
    assert canonical_bytes(one) == canonical_bytes(other)


@pytest.mark.parametrize(
    "one,other",
    [
        ({"a": "1"}, {"a": 1}),
        ({"a": None}, {}),
        ({"a": True}, {"a": 1}),
        ({"a": "caf\u00e9"}, {"a": "cafe\u0301"}),
        ({"caf\u00e9": 1}, {"cafe\u0301": 1}),
        ({"a": "а"}, {"a": "a"}),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}),
        ({"a": "\u202e"}, {"a": ""}),
        ({"a": 0.1 + 0.2}, {"a": 0.3}),
    ],
)
def test_another_value_has_another_digest(one: Any, other: Any):
    """What looks alike is not alike."""
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, -(2**53), 8392012349012345678, "\ud800", {"\udfff": 1}, b"x", {1, 2}.pop],
)
def test_what_has_no_canonical_form_is_refused(value: Any):
    """Nothing is rounded, replaced or guessed on its way into a digest."""
    with pytest.raises((ValueError, TypeError)):
        canonical_bytes({"a": value})


def test_ids_are_text_in_answers():
    """A 64-bit id as a JSON number becomes another number in a browser; every id is text."""
    from unit.cli import samples

    for view in (samples.plan(), samples.publication(), samples.why(), samples.diff(), samples.status()):
        for name, value in _leaves(json.loads(to_json_text(view))):
            assert not (isinstance(value, int) and abs(value) >= 2**53), name
            if name.endswith(("_id", "snapshot")) and value is not None:
                assert isinstance(value, str), name


def _leaves(data: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(data, dict):
        return [leaf for key, item in data.items() for leaf in _leaves(item, key)]
    if isinstance(data, list):
        return [leaf for item in data for leaf in _leaves(item, name)]
    return [(name, data)]


def test_json_for_programs_survives_every_character():
    """What is escaped for terminals means the same to a reader of JSON, half pairs and all."""
    everything = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA1), 0x200B, 0x202E, 0x2028, 0xFEFF, 0xE000, 0x1F600]))
    for text in (everything, "\ud800", "a\u202eb", "\U000e0001"):
        shown = to_json_text({"a": text})
        assert json.loads(shown)["a"] == text
        assert not hidden_in(shown)
