"""What an exception means for a chunk and for its worker."""

from __future__ import annotations

import errno

import pytest
from py4j.protocol import Py4JNetworkError

from errata.engines.spark.causes import cause_of, chain, meaning
from errata.errors import EngineError, OutOfMemory, StorageRefused, WorkerDied


class Thrown:
    """A Java throwable as py4j shows it."""

    def __init__(self, text: str, cause: Thrown | None = None) -> None:
        self._text, self._cause = text, cause

    def toString(self) -> str:  # noqa: N802
        return self._text

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self._cause


class FromJava(Exception):
    """An exception that carries a Java one."""

    def __init__(self, *texts: str) -> None:
        super().__init__(texts[0])
        self.java_exception: Thrown | None = None
        for text in reversed(texts):
            self.java_exception = Thrown(text, self.java_exception)


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
    found = meaning(FromJava(STAGE, "java.lang.RuntimeException: task failed", cause), "chunk c001", None)
    assert type(found) is kind
    assert "chunk c001" in found.message
    assert found.retryable


@pytest.mark.parametrize("text", ["org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO]", "ValueError: bad day"])
def test_what_is_none_of_these_is_the_transforms_own(text: str) -> None:
    """It is not tried again."""
    assert meaning(FromJava(STAGE, text), "chunk c001", None) is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_the_operating_system_says_no_room(number: int) -> None:
    """Python's own errors count as well, also as the cause of another."""
    error = RuntimeError("could not unpack the code")
    error.__cause__ = OSError(number, "refused")
    assert isinstance(meaning(error, "chunk c001", None), StorageRefused)


@pytest.mark.parametrize("exit_code, is_memory", [(52, True), (137, True), (-9, True), (3, True), (1, None)])
def test_a_dead_jvm_tells_by_its_exit(exit_code: int, is_memory: bool | None) -> None:
    """Out of memory is told from other ends."""
    found = meaning(ValueError("Answer from Java side is empty"), "chunk c001", exit_code)
    assert isinstance(found, WorkerDied)
    assert found.fields.get("memory") == is_memory


def test_a_broken_connection_to_the_jvm_is_a_dead_worker() -> None:
    """Even while its exit is not known yet."""
    assert isinstance(meaning(Py4JNetworkError("Answer from Java side is empty"), "chunk c001", None), WorkerDied)
    with pytest.raises(ConnectionRefusedError) as refused:
        exec("raise ConnectionRefusedError(111, 'refused')", {"__name__": "py4j.clientserver"})  # noqa: S102
    assert isinstance(meaning(refused.value, "chunk c001", None), WorkerDied)


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
    assert meaning(error, "chunk c001", None) is None


def test_the_chain_has_python_and_java() -> None:
    """Outermost first."""
    assert list(chain(FromJava("a", "b"))) == ["FromJava: a", "a", "b"]
    assert cause_of(FromJava("a", "b: said\n\tat somewhere")) == "b: said"
    assert cause_of(ValueError()) == "ValueError"
