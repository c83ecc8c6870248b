"""Append messages to a file, one line of JSON each and each once; and lines of others, whole."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from errata.engines.channels.webhook import encode
from errata.errors import EngineError
from errata.model.consumer.message import Message
from errata.model.consumer.message_formats import to_json


def append_message(place: str, message: Message) -> dict[str, Any]:
    """Append the message, and wait until the disk has it; a message that the file has already is not appended again."""
    document = to_json(message)
    line = encode({"id": document["id"], **document}) + b"\n"
    try:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        with Path(place).open("a+b") as file:
            # released when the file is closed; other processes append to it too
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file.fileno()).st_size
            if size and _has_message(file.fileno(), message.id):
                return {"appended": False}
            _append(file.fileno(), size, line)
    except OSError as error:
        raise EngineError(f"the file cannot be written: {error.strerror}") from None
    return {"appended": True}


def append_lines(place: str, lines: Sequence[bytes]) -> None:
    """Append these lines together, also if another process appends, and wait until the disk has them."""
    try:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        with Path(place).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _append(file.fileno(), os.fstat(file.fileno()).st_size, b"".join(lines))
    except OSError as error:
        raise EngineError(f"the file cannot be written: {error.strerror}") from None


def _has_message(file: int, id_: str) -> bool:
    start = b'{"id":' + json.dumps(id_, ensure_ascii=False).encode() + b","
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
        return content[: len(start)] == start or content.find(b"\n" + start) >= 0


def _append(file: int, size: int, line: bytes) -> None:
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line  # the line before was cut off
    try:
        written = os.write(file, line)
        while written < len(line):
            written += os.write(file, line[written:])
        os.fsync(file)
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, size)  # no half a line where the disk is full
        raise
