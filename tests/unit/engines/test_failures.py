"""What an exception means for a chunk and for its worker."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest
from py4j.protocol import Py4JNetworkError

from errata.engines.failures import cause_of, classify_error
from errata.errors import EngineError, OutOfMemory, StorageRefused, WorkerDied


class Frame:
    """One element of a Java stack trace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def getClassName(self) -> str:  # noqa: N802
        return self._name


class Thrown:
    """A Java throwable as py4j shows it."""

    def __init__(self, text: str, cause: Thrown | None = None, frames: Sequence[str] = ()) -> None:
        self._text, self._cause, self._frames = text, cause, frames

    def getStackTrace(self) -> list[Frame]:  # noqa: N802
        return [Frame(name) for name in self._frames]

    def toString(self) -> str:  # noqa: N802
        return self._text

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self._cause


class FromJava(Exception):
    """An exception that carries a Java one."""

    def __init__(self, *texts: str, frames: Sequence[str] = ()) -> None:
        super().__init__(texts[0])
        self.java_exception = Thrown(texts[-1], None, frames)
        for text in reversed(texts[:-1]):
            self.java_exception = Thrown(text, self.java_exception, ["org.apache.spark.sql.Dataset"])


STAGE = "org.apache.spark.SparkException: Job aborted due to stage failure"


@pytest.mark.parametrize(
    "cause, kind",
    [
        ("java.io.IOException: No space left on device", StorageRefused),
        ("java.io.FileNotFoundException: /wh/data/x.parquet (Permission denied)", StorageRefused),
        ("org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device", StorageRefused),
        ("java.nio.file.AccessDeniedException: /wh/data", StorageRefused),
        ("software.amazon.awssdk.services.s3.model.S3Exception: (Service: S3, Status Code: 403, …", StorageRefused),
        ("java.lang.OutOfMemoryError: Java heap space", OutOfMemory),
        ("ExecutorLostFailure (executor 3 exited): Container exited with code 137", OutOfMemory),
        ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", EngineError),
        ("java.net.SocketTimeoutException: Read timed out", EngineError),
        ("org.apache.iceberg.exceptions.CommitFailedException: Cannot commit", EngineError),
        ("org.apache.spark.shuffle.FetchFailedException", EngineError),
    ],
)
def test_the_innermost_cause_decides(cause: str, kind: type[EngineError]) -> None:
    """Wrapped as deep as Spark likes."""
    found = classify_error(FromJava(STAGE, "java.lang.RuntimeException: task failed", cause), "chunk c001", None)
    assert type(found) is kind
    assert "chunk c001" in found.message
    assert found.retryable


@pytest.mark.parametrize("text", ["org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO]", "ValueError: bad day"])
def test_what_is_none_of_these_is_the_transforms_own(text: str) -> None:
    """It is not tried again."""
    assert classify_error(FromJava(STAGE, text), "chunk c001", None) is None


SCAN = ["java.util.Objects", "org.apache.iceberg.expressions.Evaluator", "org.apache.spark.sql.Dataset"]
PYTHON = "org.apache.spark.api.python.PythonException: Traceback\nValueError: bad day"


@pytest.mark.parametrize(
    "error",
    [
        FromJava("org.apache.spark.SparkException: [INTERNAL_ERROR] optimizer", "java.lang.NullPointerException"),
        FromJava("java.lang.NullPointerException", frames=SCAN),
        FromJava(STAGE, "org.apache.iceberg.exceptions.ValidationException: Missing file", frames=SCAN[1:]),
        FromJava(STAGE, "java.lang.IllegalStateException: closed", frames=["org.sqlite.core.DB"]),
    ],
    ids=str,
)
def test_what_iceberg_or_a_driver_throws_is_never_blamed_on_the_transform(error: FromJava) -> None:
    """By where it was thrown, whatever its type; the cause is told."""
    found = classify_error(error, "chunk c001", None)
    assert type(found) is EngineError
    assert "failed in the engine and not in the transform" in found.message
    assert cause_of(error) in found.message


@pytest.mark.parametrize(
    "error",
    [
        FromJava(STAGE, PYTHON, frames=["org.apache.spark.scheduler.Task"]),
        FromJava(STAGE, "org.apache.spark.SparkRuntimeException: [CAST_INVALID_INPUT] x", frames=SCAN),
        FromJava(STAGE, "java.lang.IllegalArgumentException: bad", frames=["com.example.Udf", *SCAN]),
        FromJava(STAGE, "java.lang.ArithmeticException", frames=["org.apache.spark.sql.catalyst.expressions.Divide"]),
        ValueError("org.apache.iceberg.exceptions.ValidationException"),
    ],
    ids=str,
)
def test_what_the_transforms_own_code_or_expressions_throw_stays_its_own(error: Exception) -> None:
    """A Python worker, a wrong value, a function in Java, an expression: the engine only carried it."""
    assert classify_error(error, "chunk c001", None) is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_the_operating_system_says_no_room(number: int) -> None:
    """Python's own errors count as well, also as the cause of another."""
    error = RuntimeError("could not unpack the code")
    error.__cause__ = OSError(number, "refused")
    assert isinstance(classify_error(error, "chunk c001", None), StorageRefused)


@pytest.mark.parametrize("exit_code, is_memory", [(52, True), (137, True), (-9, True), (3, True), (1, None)])
def test_a_dead_jvm_tells_by_its_exit(exit_code: int, is_memory: bool | None) -> None:
    """Out of memory is told from other ends."""
    found = classify_error(ValueError("Answer from Java side is empty"), "chunk c001", exit_code)
    assert isinstance(found, WorkerDied)
    assert found.fields.get("memory") == is_memory


def test_a_broken_connection_to_the_jvm_is_a_dead_worker() -> None:
    """Even while its exit is not known yet."""
    assert isinstance(
        classify_error(Py4JNetworkError("Answer from Java side is empty"), "chunk c001", None), WorkerDied
    )
    with pytest.raises(ConnectionRefusedError) as refused:
        exec("raise ConnectionRefusedError(111, 'refused')", {"__name__": "py4j.clientserver"})  # noqa: S102
    assert isinstance(classify_error(refused.value, "chunk c001", None), WorkerDied)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Permission denied for account 7"),
        ValueError("SlowDown is no kind of event; java.lang.OutOfMemoryError is none either"),
        ConnectionRefusedError(111, "the transform's own service"),
        FromJava(STAGE, "java.lang.RuntimeException: Permission denied for account 7"),
        FromJava(f"{STAGE}: org.apache.spark.api.python.PythonException: Traceback\nValueError: Status Code: 403"),
        FromJava(STAGE, "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] No space left on device"),
    ],
)
def test_words_that_sound_like_trouble_are_not_trouble(error: Exception) -> None:
    """What the transform raises by itself, here or in a Python worker, neither parks the run nor is tried again."""
    assert classify_error(error, "chunk c001", None) is None


def test_the_cause_is_the_innermost_exception_in_one_line() -> None:
    """Java's innermost cause without its stack; a Python exception without a message by its type."""
    assert cause_of(FromJava("a", "b: said\n\tat somewhere")) == "b: said"
    assert cause_of(ValueError()) == "ValueError"
    assert cause_of(FromJava("ParseException: \n[PARSE_SYNTAX_ERROR] near 'x'\n\n== SQL ==")) == (
        "ParseException: [PARSE_SYNTAX_ERROR] near 'x'"
    )
