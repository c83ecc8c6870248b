"""Log lines of this process as JSON, each with its run and chunk; off unless errata.yaml asks for them.

A line says what happened by the name of an event, with ids, counts and codes. It has no value of a row, no text that a
person wrote and no message of an exception, because either may quote one.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

FIELDS = (
    "run_id", "chunk_id", "source_range", "transform_version", "target", "processing_mode", "attempt", "fence", "wave",
)  # fmt: skip
"""Keys that every line has; null where a line is about none."""

_logger = logging.getLogger("errata")
# a program that configures nothing gets nothing, instead of warnings on its stderr
_logger.addHandler(logging.NullHandler())
_bound: ContextVar[Mapping[str, Any]] = ContextVar("errata_log_fields", default=MappingProxyType({}))
_own: list[logging.Handler] = []
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def is_on(level: int = logging.INFO) -> bool:
    """Whether somebody gets lines of this level."""
    return _logger.isEnabledFor(level) and (bool(_own) or len(_logger.handlers) > 1 or logging.root.hasHandlers())


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line about this event, with the fields that are bound and these."""
    if is_on(level):
        # a caller's own handlers see the event as the message and the fields as an attribute
        _logger.log(level, event, extra={"errata": _merge(fields)})


def _merge(fields: Mapping[str, Any]) -> dict[str, Any]:
    bound = _bound.get()
    # what a process does for its run without naming it, such as recording a guard, belongs to the run, too
    run_id = fields.get("run_id") or bound.get("run_id")
    # of another run than the one that is worked on, only the id is known
    known = bound if run_id == bound.get("run_id") else {}
    given = {name: value for name, value in fields.items() if value is not None}
    return {**dict.fromkeys(FIELDS), **known, **given, "trace_id": find_trace_id()}


def set_fields(fields: Mapping[str, Any]) -> None:
    """Bind these fields for the rest of this context: a run that a command has opened."""
    _bound.set(dict(fields))


@contextmanager
def bind(fields: Mapping[str, Any]) -> Iterator[None]:
    """Bind these fields in addition, while the block runs."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def find_trace_id() -> str:
    """The id that lines of one command share: that of its trace, of the caller's, or one of its own."""
    if (traces := sys.modules.get("errata.traces")) and (found := traces.find_current_id()):
        return str(found)
    return make_trace_id()


@cache
def make_trace_id() -> str:
    """The trace id of this process: the one that it was given, or a new one."""
    given = _TRACEPARENT.fullmatch(os.environ.get("TRACEPARENT", ""))
    return given[1] if given else secrets.token_hex(16)


class JsonLines(logging.Formatter):
    """One JSON object per line, in ASCII, so that no value can begin another line."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """See ``logging.Formatter``."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {"at": at.replace("+00:00", "Z"), "level": record.levelname.lower(), "event": record.getMessage()}
        fields = getattr(record, "errata", {})
        line = {**head, **fields, "process": record.process, "thread": record.threadName}
        return json.dumps({name: self._clean(value) for name, value in line.items()}, ensure_ascii=True, default=str)

    def _clean(self, value: Any) -> Any:
        return self._redact(value) if isinstance(value, str) else value


def start(file: str | None, level: str, redact: Callable[[str], str]) -> str | None:
    """Write lines to this file, or to stderr; returns why that is not possible. Ends what was started before."""
    stop()
    try:
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
        handler = _open_file(file) if file else logging.StreamHandler(sys.stderr)
    except OSError as error:
        return f"{file}: {error.strerror}"
    # a full disk, or a terminal that is gone, stops no correction
    handler.handleError = _ignore  # type: ignore[method-assign]
    handler.setFormatter(JsonLines(redact))
    _own.append(handler)
    _logger.addHandler(handler)
    _logger.setLevel(level.upper())
    _logger.propagate = False
    return None


def _ignore(record: logging.LogRecord) -> None:
    del record


def _open_file(file: str) -> logging.Handler:
    """Appends to a file that other processes append to, and that may be rotated."""
    # imported here because it loads sockets and queues, which commands without a log do not need
    from logging.handlers import WatchedFileHandler

    return WatchedFileHandler(file, encoding="utf-8")


def stop() -> None:
    """Write no more lines."""
    for handler in _own:
        _logger.removeHandler(handler)
        handler.close()
    _own.clear()
    _logger.setLevel(logging.NOTSET)
    _logger.propagate = True
