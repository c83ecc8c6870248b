"""Bytes of recorded files: hashed while they are read or written, and there as a whole or not at all."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

from errata.engines.recordings.lines import BLOCK, iterate_blocks


class Digest:
    """Hash and size of what has been seen."""

    def __init__(self) -> None:
        self.value = hashlib.sha256()
        self.size = 0

    def see(self, block: bytes) -> None:
        """Take a block into account."""
        self.value.update(block)
        self.size += len(block)

    def finish(self, system: Any, place: str) -> None:
        """Read what a reader that gave up has left."""
        with system.open_input_file(place) as file:
            if self.size < file.size():
                file.seek(self.size)
                for block in iterate_blocks(file):
                    self.see(block)


class CountingFile:
    """Passes on what is written, and hashes it; without a file it only hashes."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.value = hashlib.sha256()
        self.size = 0

    def write(self, content: Any) -> int:
        """Write, and hash."""
        data = bytes(content)
        if self._file is not None:
            self._file.write(data)
        self.value.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        """Bytes so far."""
        return self.size

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The file is closed by its owner."""

    def writable(self) -> bool:
        """Always."""
        return True

    def readable(self) -> bool:
        """Never."""
        return False

    def seekable(self) -> bool:
        """Never."""
        return False


def copy_file(system: Any, landing: str, target: Any, to: str) -> Digest:
    """Copy a file as a whole; returns what was copied."""
    digest = Digest()
    with system.open_input_stream(landing, compression=None) as file, open_output(target, to) as out:
        for block in iterate_blocks(file, digest.see):
            out.write(block)
    return digest


@contextmanager
def open_output(target: Any, to: str) -> Iterator[Any]:
    """A file that is there as a whole or not at all."""
    if target.type_name == "s3":  # an object appears when it is closed, and has no directory
        with target.open_output_stream(to, buffer_size=BLOCK) as file:
            yield file
        return
    target.create_dir(posixpath.dirname(to), recursive=True)
    part = f"{to}.{token_hex(4)}.part"
    try:
        with target.open_output_stream(part, compression=None) as file:
            yield file
        target.move(part, to)
    except BaseException:
        remove_file(target, part)
        raise


def remove_file(target: Any, place: str) -> None:
    """Remove a file; one that is gone is no error."""
    try:
        target.delete_file(place)
    except FileNotFoundError:
        pass
