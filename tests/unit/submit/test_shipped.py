"""Jars that came with spark-submit are held against the pinned list."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from errata.errors import SetupError
from errata.jars import Jar
from errata.jars.shipped import require_shipped
from errata.wiring.engines import choose_code_cache

JAR = Jar("org.example", "engine", "1.0", hashlib.sha256(b"the engine").hexdigest())


def place(directory: Path, content: bytes) -> Path:
    directory.mkdir()
    found = directory / JAR.file_name
    found.write_bytes(content)
    return found


def test_the_pinned_jar_on_the_class_path_is_accepted(tmp_path: Path):
    """Wherever the cluster put it."""
    require_shipped([JAR], [tmp_path / "nowhere.jar", place(tmp_path / "a", b"the engine")])


def test_another_content_under_the_same_name_is_refused(tmp_path: Path):
    """The digest decides, and the first on the class path is what Java loads."""
    wrong, right = place(tmp_path / "a", b"another engine"), place(tmp_path / "b", b"the engine")
    with pytest.raises(SetupError, match=f"expected SHA-256 {JAR.sha256}"):
        require_shipped([JAR], [wrong, right])


def test_a_jar_that_was_not_shipped_is_named(tmp_path: Path):
    """Before anything is computed."""
    with pytest.raises(SetupError, match=r"no org\.example:engine:1\.0") as refused:
        require_shipped([JAR], [tmp_path])
    assert refused.value.fields["missing"] == ["org.example:engine:1.0"]


def test_planned_code_is_kept_beside_the_project_or_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A cluster unpacks the project where nothing may be written."""
    assert choose_code_cache(tmp_path) == tmp_path / ".errata" / "cache"
    # root may write anywhere, so the answer of the system is what is replaced
    monkeypatch.setattr("os.access", lambda *_: False)
    elsewhere = choose_code_cache(tmp_path)
    assert elsewhere.is_dir()
    assert tmp_path not in elsewhere.parents
    elsewhere.rmdir()
