"""Checkpoints are read where a reader keeps them, and copies are written beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.engines.files.checkpoints import CheckpointFiles
from errata.errors import EngineError, NotFound, StateRefused
from support.stream_model import write_checkpoint

FILES = write_checkpoint([("11", 1), ("12", 2)], first="11")


def place(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@pytest.mark.parametrize("spelling", ["cp", "{root}/cp", "file://{root}/cp", "file:{root}/cp/"])
def test_a_checkpoint_is_found_however_its_location_is_spelled(tmp_path: Path, spelling: str) -> None:
    """Relative to the project, absolute, and as Spark and Hadoop write it."""
    place(tmp_path / "cp", FILES)
    assert CheckpointFiles(str(tmp_path)).read(spelling.format(root=tmp_path)).files == FILES


def test_state_is_noticed_and_not_read(tmp_path: Path) -> None:
    """A query with state may keep gigabytes of it."""
    place(tmp_path / "cp", FILES | {"state/0/0/1.delta": b"x"})
    found = CheckpointFiles(str(tmp_path)).read("cp")
    assert found.is_stateful
    assert found.files == FILES


def test_what_is_no_checkpoint_is_said_with_its_location(tmp_path: Path) -> None:
    """Nothing there, and something else there, are two messages."""
    store = CheckpointFiles(str(tmp_path))
    with pytest.raises(NotFound, match="checkpoint gone was not found"):
        store.read("gone")
    place(tmp_path / "data", {"part-0.parquet": b"PAR1"})
    with pytest.raises(EngineError, match="data could not be read: there is no file metadata"):
        store.read("data")
    with pytest.raises(EngineError, match="nowhere://x/cp"):
        store.read("nowhere://x/cp")


def test_a_copy_has_exactly_these_files_and_can_be_written_again(tmp_path: Path) -> None:
    """A killed process writes it again; a copy that a reader has moved on is left alone."""
    store = CheckpointFiles(str(tmp_path))
    store.write("cp.errata-1", FILES)
    store.write("cp.errata-1", FILES)
    assert store.read("cp.errata-1").files == FILES
    place(tmp_path / "cp.errata-1", {"offsets/2": b"v1\n{}\n{}"})
    with pytest.raises(StateRefused, match="offsets/2, which is not part of it"):
        store.write("cp.errata-1", FILES)


def test_a_copy_is_no_checkpoint_before_it_is_whole(tmp_path: Path) -> None:
    """The file that makes it one is written last."""
    store = CheckpointFiles(str(tmp_path))
    (tmp_path / "cp" / "sources/0/offsets/0").mkdir(parents=True)
    with pytest.raises(EngineError, match="could not be read or written"):
        store.write("cp", FILES)
    assert not (tmp_path / "cp" / "metadata").exists()
