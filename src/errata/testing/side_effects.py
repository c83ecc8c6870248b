"""Notice what a transform does besides computing rows.

Noticed, in the Python process that calls the transform: files that are opened for writing, removed or renamed; network
connections; programs that are started; ``time.time`` and its like, :mod:`random`,
:mod:`uuid` and ``os.urandom`` called by name on their module; ``DataFrame.write``, ``writeTo`` and ``writeStream``;
``spark.sql`` with a statement that is no query; and, in the plan of the Spark frame that is returned, functions whose
value depends on the clock, on chance or on how rows are spread.

Not noticed: what Python UDFs do, because they run in other processes; ``datetime.now()``, and functions imported by
their own name before the check, because Python gives no hold on them; anything behind the JVM. Two runs with equal rows
(:meth:`TransformCase.assert_deterministic`) find most of what is left.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {
    "os.remove": ("removes the file", 0),
    "os.rename": ("renames the file", 0),
    "socket.connect": ("connects to", 1),
    "subprocess.Popen": ("starts the program", 0),
    "os.system": ("starts the program", 0),
}
"""Audit event → what it is, and which argument says more."""
_CHANCE: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("time", "time_ns", "localtime", "gmtime")),
    (random, ("random", "randint", "choice", "shuffle", "sample", "uniform", "gauss", "randrange")),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom",)),
)
_ENGINE = ("/pyspark/", "/py4j/")
_CALLER = str(Path(__file__).with_name("transforms.py"))
"""The module that calls the transform: frames above it are not the transform's."""
_QUERY = re.compile(r"\s*(\(|select|with|from|values|table|describe|show|explain)\b|\s*\(", re.IGNORECASE)
_HAZARDS = re.compile(
    r"\b(rand|randn|uuid|shuffle|current_timestamp|current_date|now|localtimestamp|monotonically_increasing_id"
    r"|spark_partition_id|input_file_name)\("
)
_watching: list[tuple[int, list[str]]] = []
_hooked = threading.Lock()
_is_hooked: list[bool] = []


@contextmanager
def watch_side_effects() -> Iterator[list[str]]:
    """A list that side effects of this thread are added to while the block runs."""
    seen: list[str] = []
    with _hooked:
        if not _is_hooked:  # a hook stays for the life of the process, so there is one
            sys.addaudithook(_hear)
            _is_hooked.append(True)
    mine = (threading.get_ident(), seen)
    with ExitStack() as patches:
        for module, names in _CHANCE:
            for name in names:
                patches.enter_context(patch.object(module, name, _tell(seen, module, name)))
        for change in _patch_spark(seen):
            patches.enter_context(change)
        _watching.append(mine)
        try:
            yield seen
        finally:
            _watching.remove(mine)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _watching or (event not in _EVENTS and event != "open"):
        return
    for thread, seen in _watching:
        if thread != threading.get_ident() or _is_engine():
            continue
        if event == "open" and isinstance(args[2], int) and args[2] & _WRITE_FLAGS:
            seen.append(f"opens the file {args[0]} for writing")
        elif event in _EVENTS:
            what, place = _EVENTS[event]
            seen.append(f"{what} {args[place]}")


def _is_engine() -> bool:
    """Whether Spark's own client is at work, which talks to the JVM and keeps time for itself."""
    at = inspect.currentframe()
    while at is not None and at.f_code.co_filename != _CALLER:
        if any(part in at.f_code.co_filename for part in _ENGINE) or "importlib" in at.f_code.co_filename:
            return True
        at = at.f_back
    return False


def _tell(seen: list[str], module: Any, name: str) -> Callable[..., Any]:
    real, thread = getattr(module, name), threading.get_ident()

    def call(*args: Any, **options: Any) -> Any:
        if threading.get_ident() == thread and not _is_engine():
            seen.append(f"calls {module.__name__}.{name}")
        return real(*args, **options)

    return call


def _patch_spark(seen: list[str]) -> Iterator[Any]:
    """Changes to Spark's classes that notice writes; none while Spark is not loaded."""
    loaded = sys.modules.get("pyspark.sql.classic.dataframe")
    session = sys.modules.get("pyspark.sql.session")
    if loaded is None or session is None:
        return
    for name in ("write", "writeStream"):
        real = getattr(loaded.DataFrame, name).fget

        def get(frame: Any, name: str = name, real: Callable[[Any], Any] = real) -> Any:
            seen.append(f"uses DataFrame.{name}")
            return real(frame)

        yield patch.object(loaded.DataFrame, name, property(get))
    write_to, sql = loaded.DataFrame.writeTo, session.SparkSession.sql

    def told_write_to(frame: Any, table: str) -> Any:
        seen.append(f"uses DataFrame.writeTo({table!r})")
        return write_to(frame, table)

    def told_sql(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        if not _QUERY.match(str(query)):
            seen.append(f"runs the statement {str(query).strip().split(chr(10))[0][:80]}")
        return sql(self, query, *args, **options)

    yield patch.object(loaded.DataFrame, "writeTo", told_write_to)
    yield patch.object(session.SparkSession, "sql", told_sql)


def find_plan_hazards(made: Any) -> list[str]:
    """Functions in the plan of a Spark frame whose value depends on more than the rows; empty for anything else."""
    if not hasattr(made, "_jdf"):
        return []
    plan = str(made._jdf.queryExecution().analyzed().toString())  # noqa: SLF001 - PySpark shows plans nowhere else
    return [f"uses {name}() in its plan" for name in dict.fromkeys(_HAZARDS.findall(plan))]
