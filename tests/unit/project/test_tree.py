from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.project.yaml.tree import MappingNode, ScalarNode, TreeError, parse_tree


def refusal(text: str | bytes) -> tuple[str, int | None]:
    with pytest.raises(TreeError) as refused:
        parse_tree(text if isinstance(text, bytes) else text.encode())
    return refused.value.message, refused.value.mark.line if refused.value.mark else None


def test_an_alias_bomb_is_refused_at_once():
    """Aliases are refused at the first anchor, before anything is expanded."""
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    start = time.monotonic()
    assert refusal(bomb) == ("anchors and aliases are refused; write the value out where it is used", 1)
    assert time.monotonic() - start < 1
    assert refusal("a: 1\nb: *x\n")[1] == 2
    assert refusal("base: &b {x: 1}\nc: {<<: *b}\n")[1] == 1


def test_depth_is_bounded():
    """Fifty levels are read, more are refused without exhausting the stack."""
    assert isinstance(parse_tree(("a: " + "[" * 49 + "]" * 49).encode())[0], MappingNode)
    assert refusal("a: " + "[" * 50 + "]" * 50) == ("nested too deeply; expected at most 50 levels", 1)
    assert refusal("a: " + "[" * 100_000)[0] == "nested too deeply; expected at most 50 levels"


def test_size_is_bounded():
    """A file above one megabyte is refused unread."""
    assert refusal(b"a: " + b"x" * 1_000_000)[0] == "the file is too large; expected at most 1000000 bytes"


@pytest.mark.parametrize(
    "text,said,line",
    [
        ("", "the file is empty; expected a mapping", 1),
        ("# only a comment\n", "the file is empty; expected a mapping", 1),
        ("- a\n", "expected a mapping of keys to values; found a list", 1),
        ("a: 1\n---\nb: 2\n", "expected one document; found a second", 2),
        ("a: !!python/object:os.system x\n", "the tag tag:yaml.org,2002:python/object:os.system is refused", 1),
        ("a: !secret x\n", "the tag !secret is refused; expected plain YAML values", 1),
        ("? [a, b]\n: 1\n", "expected a name as key; found a list", 1),
        (b"a: 1\nb: \xff\n", "expected UTF-8 text", 2),
        ("a: 1\nb: \x07\n", "not YAML: special characters are not allowed", 2),
        ("a: 1\nb: [1, 2\n", "not YAML: ", 3),
        ("a: 1\n\tb: 2\n", "not YAML: a tab; expected spaces for the indentation", 2),
        ("a: 1\n b: 2\n", "not YAML: a key where none can be: its indentation is wrong, or a value", 2),
        ("a: b: c\n", "not YAML: a key where none can be: its indentation is wrong, or a value", 1),
        ("a:\n  b: 1\n c: 2\n", "not YAML: the indentation is wrong here or on the line before", 3),
        ("a: 1\nb\nc: 2\n", "not YAML: a key without a colon, here or on the line before", 3),
    ],
)
def test_what_cannot_be_read_names_its_line(text: str | bytes, said: str, line: int):
    """A file that is not a plain YAML mapping is refused where it stops being one."""
    message, where = refusal(text)
    assert message.startswith(said)
    assert where == line


@pytest.mark.parametrize(
    "text,kind",
    [
        ("on", "str"),
        ("NO", "str"),
        ("12:30:45", "str"),
        ("2026-01-03", "str"),
        ("1_000", "str"),
        ("0b1", "str"),
        ("'1'", "str"),
        ("~", "null"),
        ("", "null"),
        ("True", "bool"),
        ("0755", "int"),
        ("0x1F", "int"),
        ("1.50", "float"),
        (".inf", "float"),
        ("!!str 12", "str"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, kind: str):
    """Only the core schema's spellings are more than text."""
    root, _ = parse_tree(f"a: {text}\n".encode())
    node = root.entries["a"].value
    assert isinstance(node, ScalarNode)
    assert node.kind == kind


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes):
    """No input makes the reader fail in another way."""
    try:
        root, _ = parse_tree(content)
    except TreeError:
        return
    assert isinstance(root, MappingNode)


@given(st.text(alphabet="ab:-[]{},&*!|>'\"#%@ \n\t?~<", max_size=60))
def test_any_yaml_punctuation_is_read_or_refused(text: str):
    """No arrangement of YAML's own signs makes the reader fail in another way."""
    try:
        root, _ = parse_tree(text.encode())
    except TreeError:
        return
    assert isinstance(root, MappingNode)
