"""Split a file into lines with little memory, whatever is in it: unpacked as needed, long lines cut, size limited."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

BLOCK = 1024 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is bad; only its beginning is kept."""
KEPT_BYTES = 10_000
MAX_RATIO = 200
"""How many times its size a file may have when it is unpacked; text has about 10."""
_FREE_BYTES = 64 * 1024 * 1024
"""What may be unpacked before the ratio counts: a small file of zeros is no attack."""
_BOM = b"\xef\xbb\xbf"


class UnreadableFile(Exception):
    """The file as a whole cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end; ``content`` is its beginning if it is too long."""

    number: int
    content: bytes
    is_cut: bool = False


def iterate_lines(blocks: Iterator[bytes]) -> Iterator[Line]:
    """Lines of some blocks, numbered from 1; a byte order mark at the beginning is no part of the first one.

    Empty lines are counted and left out.
    """
    number, rest, is_dropping = 0, b"", False
    for n, block in enumerate(blocks):
        pieces = (rest + block).split(b"\n")
        if n == 0 and pieces[0].startswith(_BOM):
            pieces[0] = pieces[0][len(_BOM) :]
        rest = pieces.pop()
        for piece in pieces:
            number += 1
            if not is_dropping:
                yield from _build_line(number, piece)
            is_dropping = False  # that was the end of a line that was reported when it became too long
        if is_dropping:
            rest = b""
        if len(rest) > MAX_LINE_BYTES:
            yield Line(number + 1, rest[:KEPT_BYTES], is_cut=True)
            rest, is_dropping = b"", True
    if rest and not is_dropping:
        yield from _build_line(number + 1, rest)


def _build_line(number: int, content: bytes) -> Iterator[Line]:
    if len(content) > MAX_LINE_BYTES:
        yield Line(number, content[:KEPT_BYTES], is_cut=True)
    elif content.strip():
        yield Line(number, content.removesuffix(b"\r"))


def iterate_blocks(file: Any, see: Callable[[bytes], None] = lambda _: None) -> Iterator[bytes]:
    """Blocks of an open file; ``see`` gets each as it is stored."""
    while block := bytes(file.read(BLOCK)):
        see(block)
        yield block


def unpack_blocks(blocks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """Unpack gzip, one block at a time; raises ``UnreadableFile`` if it is broken, cut off or much too large."""
    unpacker, taken, made = zlib.decompressobj(31), 0, 0
    is_open = False
    for block in blocks:
        taken += len(block)
        waiting = block
        while waiting:
            is_open = True
            try:
                piece = unpacker.decompress(waiting, BLOCK)
            except zlib.error as error:
                raise UnreadableFile(f"it is not whole gzip: {error}") from error
            made += len(piece)
            if made > _FREE_BYTES and made > taken * MAX_RATIO:
                raise UnreadableFile(f"it unpacks to more than {MAX_RATIO:,} times its size")
            _refuse_large(made, max_bytes)
            if piece:
                yield piece
            if unpacker.eof:
                waiting = unpacker.unused_data.lstrip(b"\0")
                unpacker, is_open = zlib.decompressobj(31), False
            else:
                waiting = unpacker.unconsumed_tail
    if is_open:
        raise UnreadableFile("it is cut off in the middle of gzip")


def limit_blocks(blocks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """The blocks of a file that is not packed; raises ``UnreadableFile`` beyond ``max_bytes``."""
    made = 0
    for block in blocks:
        made += len(block)
        _refuse_large(made, max_bytes)
        yield block


def _refuse_large(made: int, max_bytes: int) -> None:
    if made > max_bytes:
        raise UnreadableFile(f"it has more than {max_bytes:,} bytes; expected at most max_bytes of its source")
