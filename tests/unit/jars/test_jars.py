"""The jar list and its cache: only listed contents are ever handed out, and only ``fetch`` downloads."""

from __future__ import annotations

import hashlib
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from errata.cli.main import main
from errata.errors import SetupError
from errata.jars import Jar, default_cache_dir, fetch_jars, list_jars, load_jar_groups, load_lanes, require_jars
from errata.jars.fetch import render_ivy_module, resolve_with_ivy
from errata.jars.store import parse_jar_list

CONTENT = {"a": b"archive a", "b": b"archive b"}


def jar(artifact: str) -> Jar:
    return Jar("org.example", artifact, "1.0", hashlib.sha256(CONTENT[artifact]).hexdigest())


JARS = (jar("a"), jar("b"))


class Repository:
    """Stands in for the network: serves the contents it is given and remembers what it was asked for."""

    def __init__(self, contents: dict[str, bytes] | None = None) -> None:
        self.contents = CONTENT if contents is None else contents
        self.asked: list[str] = []

    def __call__(self, jars: Sequence[Jar], directory: Path) -> None:
        for wanted in jars:
            self.asked.append(wanted.artifact)
            if wanted.artifact in self.contents:
                (directory / wanted.file_name).write_bytes(self.contents[wanted.artifact])


def same_size_other_content(path: Path) -> None:
    """A change that only a modification time gives away."""
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_every_shipped_jar_is_pinned_by_version_and_digest_and_names_no_address():
    """The shipped list parses (each entry a full coordinate with a SHA-256) and holds no address."""
    assert any(jar.artifact.startswith("iceberg-spark-runtime-") for jar in list_jars("spark"))
    assert "sqlite-jdbc" in {jar.artifact for jar in list_jars("spark")}
    assert "://" not in files("errata.jars").joinpath("jars.toml").read_text(encoding="utf-8")


def test_a_file_name_in_the_cache_means_one_jar():
    """No two different jars of the list, in whatever groups, share a file name."""
    jars = {jar for lane in load_lanes() for group in load_jar_groups(lane).values() for jar in group}
    assert len({jar.file_name for jar in jars}) == len(jars)


@pytest.mark.parametrize(
    "entry",
    [
        f'"org.example:a" = "{"0" * 64}"',
        f'"org.example:../a:1.0" = "{"0" * 64}"',
        f'"org.example:a:latest release" = "{"0" * 64}"',
        '"org.example:a:1.0" = "abc"',
        '"org.example:a:1.0" = 1',
    ],
)
def test_an_entry_that_could_not_be_verified_is_refused(entry: str):
    """A list entry without a full plain coordinate or a whole SHA-256 is an error when the list is read."""
    with pytest.raises(SetupError, match="jar list"):
        parse_jar_list(f"[spark]\n{entry}\n")


def test_an_unknown_group_is_refused_by_name():
    """Asking for a group that is not in the list names the groups that are."""
    with pytest.raises(SetupError, match=r"there are: .*spark"):
        list_jars("sparc")


def test_fetch_puts_every_listed_jar_into_the_cache(tmp_path: Path):
    """After ``fetch`` the cache holds exactly the listed contents and nothing half-done."""
    cache = tmp_path / "new" / "jars"
    assert fetch_jars(cache, jars=JARS, resolve=Repository()) == list(JARS)
    assert [path.read_bytes() for path in require_jars(cache, jars=JARS)] == [b"archive a", b"archive b"]
    assert not list(cache.glob(".*"))


def test_fetch_downloads_only_what_is_missing_or_wrong(tmp_path: Path):
    """A verified jar is not downloaded again; a damaged one is replaced."""
    fetch_jars(tmp_path, jars=JARS, resolve=Repository())
    again = Repository()
    fetch_jars(tmp_path, jars=JARS, resolve=again)
    assert again.asked == []
    truncated(JARS[1].path(tmp_path))
    fetch_jars(tmp_path, jars=JARS, resolve=again)
    assert again.asked == ["b"]
    assert JARS[1].path(tmp_path).read_bytes() == b"archive b"


def test_a_download_with_another_digest_is_refused_and_removed(tmp_path: Path):
    """The error names jar, expected and found digest, and the file never reaches the cache."""
    wrong = Repository({"a": b"something else", "b": b"archive b"})
    with pytest.raises(SetupError) as caught:
        fetch_jars(tmp_path, jars=JARS, resolve=wrong)
    found = hashlib.sha256(b"something else").hexdigest()
    assert caught.value.message == f"org.example:a:1.0: expected SHA-256 {JARS[0].sha256}, found {found}"
    assert caught.value.fields == {"jar": "org.example:a:1.0", "expected": JARS[0].sha256, "found": found}
    assert not JARS[0].path(tmp_path).exists()
    assert not list(tmp_path.glob(".fetch-*"))


def test_a_jar_no_repository_has_is_named(tmp_path: Path):
    """When the download brings nothing for a coordinate, the error says which."""
    with pytest.raises(SetupError, match=r"org\.example:b:1\.0 was not found"):
        fetch_jars(tmp_path, jars=JARS, resolve=Repository({"a": b"archive a"}))


def test_require_names_all_missing_jars_and_the_command_and_never_downloads(tmp_path: Path):
    """``require`` on an empty cache is an error with all missing jars and the fetch command; it creates nothing."""
    with pytest.raises(SetupError) as caught:
        require_jars(tmp_path / "none", jars=JARS)
    assert caught.value.fields["missing"] == ["org.example:a:1.0", "org.example:b:1.0"]
    assert caught.value.hint == "errata jars fetch"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("damage", [truncated, same_size_other_content])
def test_require_refuses_a_jar_that_changed_after_it_was_verified(tmp_path: Path, damage: Callable[[Path], None]):
    """A changed size or modification time makes ``require`` hash again, refuse, and leave the file for a look."""
    fetch_jars(tmp_path, jars=JARS, resolve=Repository())
    damage(JARS[0].path(tmp_path))
    with pytest.raises(SetupError, match=r"org\.example:a:1\.0: expected SHA-256") as caught:
        require_jars(tmp_path, jars=JARS)
    assert caught.value.hint == "errata jars fetch"
    assert JARS[0].path(tmp_path).exists()


def test_a_touched_jar_with_the_right_content_is_accepted(tmp_path: Path):
    """A new modification time alone costs one hash, not an error."""
    fetch_jars(tmp_path, jars=JARS, resolve=Repository())
    os.utime(JARS[0].path(tmp_path), (1, 1))
    assert require_jars(tmp_path, jars=JARS) == [jar.path(tmp_path) for jar in JARS]


def test_a_stamp_speaks_only_for_the_digest_it_was_written_for(tmp_path: Path):
    """When the list asks for another digest, an old stamp does not vouch for the old file."""
    fetch_jars(tmp_path, jars=JARS, resolve=Repository())
    moved_on = Jar("org.example", "a", "1.0", "0" * 64)
    with pytest.raises(SetupError, match="expected SHA-256 0000"):
        require_jars(tmp_path, jars=[moved_on])


@pytest.mark.parametrize("stamp", [b"", b"{", b"[]", b"null"])
def test_a_damaged_stamp_means_hash_again(tmp_path: Path, stamp: bytes):
    """An unreadable stamp is as good as none: the file is hashed and accepted on its content."""
    fetch_jars(tmp_path, jars=JARS, resolve=Repository())
    (tmp_path / f"{JARS[0].file_name}.verified").write_bytes(stamp)
    assert require_jars(tmp_path, jars=JARS)


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"ERRATA_CACHE": "/e", "XDG_CACHE_HOME": "/x"}, "/e/jars"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/errata/jars"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/u/.cache/errata/jars"),
        ({}, "/home/u/.cache/errata/jars"),
    ],
)
def test_the_cache_is_where_the_user_says(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch):
    """``$ERRATA_CACHE`` wins over an absolute ``$XDG_CACHE_HOME``, which wins over ``~/.cache``."""
    for name in ("ERRATA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/u")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_cache_dir() == Path(expected)


def test_ivy_is_asked_for_exactly_the_list_without_dependencies():
    """Every listed coordinate, and nothing transitive, is in the module that Ivy gets."""
    asked = ET.fromstring(render_ivy_module(JARS)).findall("dependencies/dependency")  # noqa: S314 - our own text
    assert [(d.get("org"), d.get("name"), d.get("rev")) for d in asked] == [
        ("org.example", "a", "1.0"),
        ("org.example", "b", "1.0"),
    ]
    assert {d.get("transitive") for d in asked} == {"false"}


def test_a_classifier_names_another_file_of_the_module():
    """Both files of one module are asked for by name, and have names of their own in the cache."""
    both = parse_jar_list(f'[g]\n"org.example:a:1.0" = "{"0" * 64}"\n"org.example:a:1.0:tests" = "{"1" * 64}"\n')["g"]
    assert [one.file_name for one in both] == ["a-1.0.jar", "a-1.0-tests.jar"]
    assert [one.coordinate for one in both] == ["org.example:a:1.0", "org.example:a:1.0:tests"]
    (asked,) = ET.fromstring(render_ivy_module(both)).findall("dependencies/dependency")  # noqa: S314 - our own text
    classifier = "{http://ant.apache.org/ivy/maven}classifier"
    assert [artifact.get(classifier) for artifact in asked.findall("artifact")] == [None, "tests"]


def test_without_java_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A JAVA_HOME without a Java is one sentence, not a traceback."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="Java 17 or 21 is needed; found none in JAVA_HOME="):
        resolve_with_ivy(JARS, tmp_path)


def test_the_command_reports_a_missing_jar_with_its_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """``errata jars check`` fails with the error and the next command on stderr, and nothing on stdout."""
    monkeypatch.setenv("ERRATA_CACHE", str(tmp_path))
    assert main(["jars", "check"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error[setup]: jars not in ")
    assert output.err.endswith("hint: errata jars fetch\n")
