"""Classify an exception from Spark, Java or the operating system: what it means for the chunk and its worker.

Classification uses the types and messages along the chain of causes (no space or permission, out of memory, a dead JVM,
a transient commit or network failure) and where Java threw it: Iceberg, file formats, database drivers and Spark's own
machinery are never the transform's fault. Everything else is the transform's own failure. Only messages written by Java
or the operating system are searched for keywords; messages that the transform itself raised are not.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

from errata.errors import EngineError, ErrataError, OutOfMemory, SourceCorrupt, StorageRefused, WorkerDied

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
_STORAGE = (
    "java.nio.file.AccessDeniedException",
    "org.apache.hadoop.security.AccessControlException",
    "Status Code: 403",
    "(Service: S3, Status Code: 403",
)
_STORAGE_MESSAGE = re.compile(
    r"\b(?:java\.io|java\.nio\.file|org\.apache\.hadoop)\.[\w.$]+: "
    r"[^\n]*(?:No space left on device|Disk quota exceeded|Read-only file system|Permission denied)"
)
_FROM_PYTHON = re.compile(r"PythonException: .*", re.DOTALL)
"""Where Java quotes an exception that the transform raised in a Python worker."""
_MEMORY = (
    "java.lang.OutOfMemoryError",
    "org.apache.spark.memory.SparkOutOfMemoryError",
    "Container killed by YARN for exceeding",
    "OOMKilled",
    "exit code 137",
    "exited with code 137",
    "exited with code 52",
)
_TRANSIENT = (
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "java.sql.SQLTransient",
    "java.util.concurrent.TimeoutException",
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.CommitStateUnknownException",
    "org.apache.iceberg.exceptions.ServiceFailureException",
    "org.apache.iceberg.exceptions.ServiceUnavailableException",
    "org.apache.iceberg.jdbc.UncheckedSQLException",
    "org.apache.spark.shuffle.FetchFailedException",
    "software.amazon.awssdk.core.exception.",
    "ExecutorLostFailure",
    "SlowDown",
    "Status Code: 503",
    "Status Code: 500",
    "cancelled because SparkContext was shut down",
)
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE\.(?!FILE_NOT_EXIST)\w+\] [^\n]*? file (\S.*?)\.(?=\s|$)", re.MULTILINE)
"""Spark's message, with the file name, for a file that exists but cannot be read."""
_RUNTIME_PACKAGES = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "scala.")
"""Frames of the runtime, skipped when looking for the code that threw."""
_ENGINE_PACKAGES = (
    "org.apache.iceberg.",
    "org.apache.parquet.",
    "org.apache.avro.",
    "org.apache.orc.",
    "org.apache.hadoop.",
    "org.apache.http.",
    "org.apache.hc.",
    "org.postgresql.",
    "org.sqlite.",
    "com.zaxxer.hikari.",
    "software.amazon.",
    "org.apache.spark.sql.connector.",
    "org.apache.spark.sql.execution.datasources.v2.",
    "org.apache.spark.scheduler.",
    "org.apache.spark.storage.",
    "org.apache.spark.shuffle.",
    "org.apache.spark.network.",
    "org.apache.spark.rpc.",
)
"""Packages that never run a transform's expressions: an exception thrown there is an engine failure."""
_ABOUT_AN_EXPRESSION = re.compile(r"^[\w.$]+: \[(?!INTERNAL_ERROR)[A-Z][A-Z0-9_.]+\]")
"""Spark's error classes for a wrong expression, type or value in the query."""
_DEFECT_OF_SPARK = "[INTERNAL_ERROR"
_MAX_FRAMES = 60
_OUT_OF_MEMORY_EXITS = {3, 52, 137, -9}
"""Exit codes of ``ExitOnOutOfMemoryError``, Spark's own handler and the kernel's OOM killer."""


def classify_error(error: BaseException, where: str, exit_code: int | None) -> ErrataError | None:
    """Map an exception to an Errata error; None if the transform itself failed.

    ``exit_code`` is the exit code of a dead JVM, None while it lives.
    """
    if isinstance(error, ErrataError):
        return error
    # first: a dead JVM cannot be asked for causes and messages
    if exit_code is not None or any(_is_jvm_gone(one) for one in iterate_exceptions(error)):
        return _build_worker_died(where, exit_code)
    try:
        told = "\n".join(_FROM_PYTHON.sub("", text) for text in _iterate_system_texts(error))
    except Exception as silence:
        if _is_jvm_gone(silence):
            return _build_worker_died(where, exit_code)
        raise
    no_room = any(isinstance(one, OSError) and one.errno in _NO_ROOM for one in iterate_exceptions(error))
    if no_room or _contains_any(told, _STORAGE) or _STORAGE_MESSAGE.search(told):
        return StorageRefused(
            f"{where} could not be written: {cause_of(error)}",
            state="the chunk was given back; chunks that were adopted are kept; main is unchanged",
            hint="free space or fix the permission, then repeat the command: it continues where it stopped",
        )
    if any(isinstance(one, MemoryError) for one in iterate_exceptions(error)) or _contains_any(told, _MEMORY):
        return OutOfMemory(
            f"{where} ran out of memory: {cause_of(error)}",
            state="nothing of this chunk was adopted; main is unchanged",
            hint="it is tried again in smaller pieces; spark.driver.memory and spark.executor.memory set what there is",
        )
    if _contains_any(told, _TRANSIENT):
        return EngineError(
            f"{where} failed in a way that may pass: {cause_of(error)}",
            state="nothing of this chunk was adopted; main is unchanged",
        )
    return find_corrupt_file(error, where) or _classify_engine_error(error, where)


def _classify_engine_error(error: BaseException, where: str) -> EngineError | None:
    """A failure inside the engine, with its cause; None if the transform may have caused it."""
    java = next((found for one in iterate_exceptions(error) if (found := _find_java_exception(one)) is not None), None)
    if java is None:
        return None
    is_defect = False
    while True:
        text = str(java.toString())
        is_defect = is_defect or _DEFECT_OF_SPARK in text.partition("\n")[0]
        cause = java.getCause()
        if cause is None:
            break
        java = cause
    if _FROM_PYTHON.search(text) or _ABOUT_AN_EXPRESSION.match(text):
        return None
    thrower = next((name for name in _iterate_frames(java) if not name.startswith(_RUNTIME_PACKAGES)), "")
    if not is_defect and not thrower.startswith(_ENGINE_PACKAGES):
        return None
    place = f", thrown in {thrower}" if thrower else ""
    return EngineError(
        f"{where} failed in the engine and not in the transform: {cause_of(error)}{place}",
        state="nothing of this chunk was adopted; main is unchanged",
    )


def _iterate_frames(java: Any) -> Iterator[str]:
    """Class names of a throwable's stack frames, innermost first."""
    for n, frame in enumerate(java.getStackTrace()):
        if n == _MAX_FRAMES:
            return
        yield str(frame.getClassName())


def find_corrupt_file(error: BaseException, where: str) -> SourceCorrupt | None:
    """An error naming the unreadable file; None if no file is named or the cause is transient."""
    told = "\n".join(_FROM_PYTHON.sub("", text) for text in _iterate_system_texts(error))
    found = _UNREADABLE.search(told)
    if found is None or _contains_any(told, _TRANSIENT):
        return None
    return SourceCorrupt(
        f"{where}: {found[1]} cannot be read: {cause_of(error)}",
        state="nothing of this chunk was staged; main is unchanged",
        hint="restore the file; a plan has to be made again, because a file that was repaired is another file",
        path=found[1],
    )


def _build_worker_died(where: str, exit_code: int | None) -> ErrataError:
    if exit_code in _OUT_OF_MEMORY_EXITS:
        return WorkerDied(
            f"the JVM ended with exit code {exit_code} while computing {where}: probably out of memory",
            state="chunks that were adopted are kept; main is unchanged",
            hint="errata run continues with smaller chunks; spark.driver.memory sets the limit",
            memory=True,
        )
    ended = "" if exit_code is None else f" with exit code {exit_code}"
    return WorkerDied(
        f"the JVM ended{ended} while computing {where}",
        state="chunks that were adopted are kept; main is unchanged",
        hint="errata run continues where this one stopped",
    )


def iterate_java_texts(error: BaseException) -> Iterator[str]:
    """What each Java exception of an error says, outermost first."""
    java = _find_java_exception(error)
    while java is not None:
        yield str(java.toString())
        java = java.getCause()


def cause_of(error: BaseException) -> str:
    """The innermost cause in one line, without Java's stack."""
    if (java := _find_java_exception(error)) is not None:
        while java.getCause() is not None:
            java = java.getCause()
        text = str(java.toString())
        if _FROM_PYTHON.search(text) and (said := _find_raised(text)):
            return said
        return _join_first_line(text)
    text = str(getattr(error, "desc", "") or error)
    if type(error).__name__ == "PythonException" and (said := _find_raised(text)):
        return said
    first = next((line for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _join_first_line(text: str) -> str:
    """The first line of Java's text; what a parser says starts on the line after the name of its exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]) or text


def _find_raised(text: str) -> str:
    """What a Python worker raised: the first line after the frames of its traceback."""
    after = text.rpartition("\n  File ")[2].splitlines()[1:]
    return next((line.strip() for line in after if line.strip() and not line.startswith(" ")), "")


def iterate_exceptions(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _find_java_exception(error: BaseException) -> Any:
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _iterate_system_texts(error: BaseException) -> Iterator[str]:
    for one in iterate_exceptions(error):
        if _find_java_exception(one) is not None:
            yield from iterate_java_texts(one)
        elif isinstance(one, OSError):
            yield str(one)


def comes_from_java(error: BaseException) -> bool:
    """Whether Java threw the error or a cause of it."""
    return any(_find_java_exception(one) is not None for one in iterate_exceptions(error))


def _is_jvm_gone(error: BaseException) -> bool:
    """Whether the connection to the JVM broke; connections that the transform opened itself do not count."""
    if type(error).__name__ == "Py4JNetworkError":
        return True
    return isinstance(error, ConnectionError) and any(
        frame.f_globals.get("__name__", "").startswith("py4j.") for frame, _ in walk_tb(error.__traceback__)
    )


def _contains_any(told: str, marks: tuple[str, ...]) -> bool:
    return any(mark in told for mark in marks)
