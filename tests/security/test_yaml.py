"""YAML that is not what it seems: refused with file and line, cheaply, before anything is made of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from errata.errors import ProjectFileError
from errata.project import load_project
from errata.project.yaml.tree import MAX_BYTES
from security.test_project_files import ERRATA, PRODUCT

GOOD = ERRATA.replace("@", "test")


def _write(root: Path, product: str | bytes, project: str | bytes = GOOD) -> Path:
    (root / "products").mkdir(exist_ok=True)
    for name, content in (("errata.yaml", project), ("products/p.yaml", product)):
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def _problems(root: Path) -> list[str]:
    with pytest.raises(ProjectFileError) as refused:
        load_project(root, environ={})
    return [f"{p['file']}:{p['line']}: {p['message']}" for p in refused.value.fields["problems"]]


def _config(root: Path, written: str) -> Any:
    _write(root, PRODUCT.replace("2.0.0}", f"2.0.0, config: {{x: {written}}}}}"))
    return load_project(root, environ={}).products["fin.sales"].transform.config["x"]


LAUGHS = "lol0: &l0 lol\n" + "".join(f"lol{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    "added,said",
    [
        (LAUGHS, "10: anchors and aliases are refused"),
        ("description: &x text\n", "10: anchors and aliases are refused"),
        ("description: *x\n", "10: anchors and aliases are refused"),
        ("description: !!python/object/apply:os.system [id]\n", "10: the tag tag:yaml.org,2002:python/object/apply"),
        ("description: !!python/name:os.system x\n", "10: the tag tag:yaml.org,2002:python/name"),
        ("description: !ruby/object:Gem x\n", "10: the tag !ruby/object:Gem is refused"),
        ("description: !<tag:evil.example,2026:x> y\n", "10: the tag tag:evil.example,2026:x is refused"),
        ("description: !!binary aGk=\n", "10: the tag tag:yaml.org,2002:binary is refused"),
        ("description: !!set {a, b}\n", "10: the tag tag:yaml.org,2002:set is refused"),
        ("description: !!timestamp 2026-01-01\n", "10: the tag tag:yaml.org,2002:timestamp is refused"),
        ("owner: again\n", '10: duplicate key "owner"; it was given before, on line 2'),
        ("'owner': again\n", '10: duplicate key "owner"; it was given before, on line 2'),
        ("consumers: []\ndiff: {tolerance: {a: 1, a: 2}}\n", '11: duplicate key "a"'),
        ("caf\u00e9: 1\ncafe\u0301: 2\n", '11: duplicate key "cafe\u0301"; it was given before, on line 10'),
        ("<<: {owner: x}\n", '10: unknown key "<<"'),
        ("description: " + "[" * 60 + "]" * 60 + "\n", "10: nested too deeply; expected at most 50 levels"),
        ("--- \nproduct: second\n", "10: expected one document; found a second"),
        ("... \nproduct: second\n", "11: expected one document; found a second"),
        ('description: "a\\0b"\n', "10: expected text that can be seen; found the character U+0000"),
        ('description: "\\e[2J"\n', "10: expected text that can be seen; found the character U+001B"),
        ('description: "\\u202Egnp.exe"\n', "10: expected text that can be seen; found the character U+202E"),
        ("description: a\u202eb\n", "10: expected text that can be seen; found the character U+202E"),
        ("description: a\ufeffb\n", "10: expected text that can be seen; found the character U+FEFF"),
        ('description: "\\ud800"\n', "10: expected text that can be seen; found the character U+D800"),
        ('description: "\\ud83d\\ude00"\n', "10: expected text that can be seen; found the character U+D83D"),
        ('description: "\\x9b31m"\n', "10: expected text that can be seen; found the character U+009B"),
        ('"\\x07": 1\n', "10: expected text that can be seen; found the character U+0007"),
        ("description: \x01\n", "10: not YAML: special characters are not allowed"),
        ("description: \x00\n", "10: not YAML: special characters are not allowed"),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_refused_at_its_line(tmp_path: Path, added: str, said: str):
    """Tags, aliases, second meanings and invisible characters have no place in a file that people approve."""
    start = time.process_time()
    found = _problems(_write(tmp_path, PRODUCT + added))
    assert time.process_time() - start < 2
    assert any(problem.startswith(f"products/p.yaml:{said}") for problem in found), found


def test_a_byte_order_mark_at_the_beginning_is_no_character(tmp_path: Path):
    """Editors of other systems write one; the file means the same."""
    _write(tmp_path, b"\xef\xbb\xbf" + PRODUCT.encode(), b"\xef\xbb\xbf" + GOOD.encode())
    assert load_project(tmp_path, environ={}).products["fin.sales"].owner == "finance"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_another_encoding_is_refused(tmp_path: Path, encoding: str):
    """A file is UTF-8, or its bytes would mean two things."""
    (said,) = _problems(_write(tmp_path, (PRODUCT + "description: é\n").encode(encoding)))
    assert (said.startswith("products/p.yaml:") and "expected UTF-8 text" in said) or "not YAML" in said


@pytest.mark.parametrize(
    "content",
    [
        b"a: " + b"x" * MAX_BYTES,
        b"# " + b"x\n# " * 300_000,
        b"a: " + b"[" * 900_000,
        b"a: " + b"{a: " * 200_000,
        b"a:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 1200)),
        b"a: '" + b"'' " * 30_000,
        b"? " * 300_000,
        b"- " * 300_000,
        b"a: &" + b"a" * 100_000,
        b"a: !" + b"a" * 100_000,
        b"%TAG ! tag:x,2000:\n---\na: 1\n",
    ],
    ids=["long value", "long comment", "open lists", "open mappings", "deep blocks", "quotes", "keys", "items",
         "long anchor", "long tag", "a directive"],
)  # fmt: skip
def test_a_bomb_costs_little(tmp_path: Path, content: bytes):
    """Size and depth are judged while reading, not after; no file takes more than seconds."""
    start = time.process_time()
    _problems(_write(tmp_path, content))
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "written,means",
    [
        ("1", 1),
        ("1.0", 1),
        ("1e3", 1000),
        ("-0.0", 0),
        ("1.5", 1.5),
        ("0o17", 15),
        ("0x1F", 31),
        ("'017'", "017"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("190:20:30", "190:20:30"),
        ("2026-01-01", "2026-01-01"),
        ("yes", "yes"),
        ("NO", "NO"),
        ("on", "on"),
        ("true", True),
        ("~", None),
        ("'~'", "~"),
        ("9007199254740991", 9007199254740991),
        ("!!str 12", "12"),
    ],
)
def test_a_value_means_one_thing(tmp_path: Path, written: str, means: Any):
    """Values are those of YAML 1.2; a whole number is whole however it is written, as it will be in the manifest."""
    found = _config(tmp_path, written)
    assert (found, type(found)) == (means, type(means))


@pytest.mark.parametrize(
    "written,said",
    [
        (".nan", "expected finite numbers"),
        (".NaN", "expected finite numbers"),
        (".inf", "expected finite numbers"),
        ("-.INF", "expected finite numbers"),
        ("1e400", "expected finite numbers"),
        ("017", "expected numbers without leading zeros"),
        ("-010", "expected numbers without leading zeros"),
        ("9007199254740992", "expected numbers below 2^53; quote longer ones"),
        ("1e300", "expected numbers below 2^53; quote longer ones"),
        ("9" * 6000, "expected numbers below 2^53; quote longer ones"),
        ("0x" + "F" * 6000, "expected numbers below 2^53; quote longer ones"),
    ],
)
def test_a_number_that_readers_would_read_differently_is_refused(tmp_path: Path, written: str, said: str):
    """No reader of the manifest may see another number than the author wrote."""
    (found,) = _problems(_write(tmp_path, PRODUCT.replace("2.0.0}", f"2.0.0, config: {{x: {written}}}}}")))
    assert found.startswith(f"products/p.yaml:7: transform.config.x: {said}")


@pytest.mark.parametrize("written", ["010", "0x10", "1e2", "1.0", "0", "-1", "+5", "1_0", "'5'", "٣"])
def test_a_count_is_written_plainly(tmp_path: Path, written: str):
    """Ten is written 10: not as octal, hexadecimal, a float or in digits of another script."""
    (found,) = _problems(_write(tmp_path, PRODUCT, GOOD + f"limits: {{max_partitions: {written}}}\n"))
    assert found.startswith("errata.yaml:8: limits.max_partitions: expected a whole number from 1")
