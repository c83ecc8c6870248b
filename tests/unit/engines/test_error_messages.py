"""What a failed measurement tells: the condition and the types, never a value of a row."""

from __future__ import annotations

import traceback

import pytest
from pyspark.errors import AnalysisException, PySparkException

from errata.engines.spark.measure.aggregates import translate_spark_errors
from errata.errors import EngineError, ErrataError, SourceChanged, UsageError

SECRET = "DE89370400440532013000"


class _Known:
    """What the JVM tells about an exception."""

    def __init__(self, text: str, condition: str | None, state: str | None, **parameters: str) -> None:
        self.text, self.condition, self.state, self.parameters = text, condition, state, parameters

    def __str__(self) -> str:
        return self.text

    def getCondition(self) -> str | None:  # noqa: N802
        return self.condition

    def getSqlState(self) -> str | None:  # noqa: N802
        return self.state

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        return self.parameters


class Thrown(_Known, PySparkException):
    """While rows were read."""


class Refused(_Known, AnalysisException):
    """Before any row was read."""


CAST = Thrown(
    f'[CAST_INVALID_INPUT] The value \'{SECRET}\' of the type "STRING" cannot be cast to "BIGINT" because …\nmore',
    "CAST_INVALID_INPUT",
    "22018",
    expression=f"'{SECRET}'",
    sourceType='"STRING"',
    targetType='"BIGINT"',
    ansiConfig="spark.sql.ansi.enabled",
)
RANGE = Thrown(
    f"[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] {SECRET} cannot be represented as Decimal(5, 2)",
    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
    "22003",
    value=SECRET,
    precision="5",
    scale="2",
)
OVERFLOW = Thrown(
    f"[BINARY_ARITHMETIC_OVERFLOW] {SECRET} + 1 caused overflow.",
    "BINARY_ARITHMETIC_OVERFLOW",
    "22003",
    value1=SECRET,
    symbol="+",
    value2="1",
    functionName="`try_add`",
)
UNTOLD = Thrown(f"[ARITHMETIC_OVERFLOW] {SECRET}: overflow.", "ARITHMETIC_OVERFLOW", "22003", message=SECRET)
TASK = Thrown(
    f"Job aborted due to stage failure: Task 0 failed 1 times, most recent failure: Lost task 0.0: X: {SECRET}",
    None,
    None,
)
OTHER = Thrown(f"[FAILED_EXECUTE_UDF] {SECRET}", "FAILED_EXECUTE_UDF", "39000", reason=SECRET)


@pytest.mark.parametrize(
    "thrown, kind, said",
    [
        (CAST, UsageError, "a check cannot be measured on candidate: [CAST_INVALID_INPUT] from STRING to BIGINT"),
        (RANGE, UsageError, "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] precision 5 scale 2"),
        (OVERFLOW, UsageError, "[BINARY_ARITHMETIC_OVERFLOW] in try_add"),
        (UNTOLD, UsageError, "[ARITHMETIC_OVERFLOW]"),
        (OTHER, EngineError, "candidate cannot be measured: [FAILED_EXECUTE_UDF]"),
        (TASK, EngineError, "Job aborted due to stage failure: Task 0 failed 1 times"),
    ],
)
def test_a_failed_measurement_tells_types_and_no_value(thrown: Thrown, kind: type[ErrataError], said: str) -> None:
    """Spark quotes the value that it could not take; that value may be classified."""
    with pytest.raises(kind) as refusal, translate_spark_errors("candidate"):
        raise thrown
    assert refusal.value.message.endswith(said)
    assert SECRET not in repr((refusal.value.message, refusal.value.fields, refusal.value.hint))
    if kind is UsageError:
        assert SECRET not in "".join(traceback.format_exception(refusal.value))


def test_what_was_said_before_any_row_was_read_is_told_whole() -> None:
    """A wrong expression and a missing file are found by name."""
    text = '[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve "(a = b)"'
    with pytest.raises(UsageError, match="Cannot resolve"), translate_spark_errors("candidate"):
        raise Refused(text, "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES", "42K09")
    with pytest.raises(SourceChanged, match="reading file s3://b/x"), translate_spark_errors("input:raw"):
        raise Thrown("[FAILED_READ_FILE.NO_HINT] reading file s3://b/x", "FAILED_READ_FILE.NO_HINT", "KD001")
