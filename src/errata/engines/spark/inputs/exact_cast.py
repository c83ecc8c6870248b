"""Detect values that a cast would lose or change. Runs no Spark action.

Text must be a complete value of the type (:func:`errata.model.types.find_literal_pattern`), because Spark reads
``2023`` and ``2023-11-30 and so on`` as dates. Any other value is cast back and must equal the original.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.model.types import find_literal_pattern, to_spark_type

_BINARY_DIGITS = {"float": 6, "double": 15}
"""Number of decimal digits that the binary type always preserves."""
_PADDED_TYPES = ("int", "long", "float", "double", "decimal")
_WIDE, _WIDE_PLACES = "decimal(38,18)", 18
_BEYOND_LONG = 2.0**63


def is_changed(source: Column, found: str, value: Column, wanted: str) -> Column:
    """Whether a non-NULL value became NULL or another value; both types must be normalized and castable."""
    changed = (
        _is_text_changed(source, value, wanted)
        if found == "string"
        else _is_value_changed(source, found, value, wanted)
    )
    return source.isNotNull() & (value.isNull() | F.coalesce(changed, F.lit(True)))  # noqa: FBT003 - a literal


def _is_value_changed(source: Column, found: str, value: Column, wanted: str) -> Column:
    other = ~value.try_cast(to_spark_type(found)).eqNullSafe(source)
    # 2^63 silently becomes the largest long in both directions, so the round trip would not detect it
    for kind, number, opposite in ((found, source, wanted), (wanted, value, found)):
        if kind in _BINARY_DIGITS and opposite == "long":
            other |= number >= F.lit(_BEYOND_LONG)
    return other


def _is_text_changed(source: Column, value: Column, wanted: str) -> Column:
    name = wanted.partition("(")[0]
    form = find_literal_pattern(wanted)
    if form is None or name == "boolean":  # Spark's words for true and false are unambiguous
        return F.lit(False)  # noqa: FBT003
    blank = "[ ]*" if name in _PADDED_TYPES else ""
    malformed = ~source.rlike(rf"\A{blank}(?:{form}){blank}\z")
    if name == "decimal":
        places = int(wanted.rstrip(")").rpartition(",")[2])
        # one pattern decides about almost every number; the others need the exponent and zeros at the end
        is_plain = source.rlike(rf"\A[+-]?[0-9]+(?:\.[0-9]{{0,{places}}})?\z")
        return ~is_plain & (malformed | (_count_decimal_places(source) > F.lit(places)))
    if name in _BINARY_DIGITS:
        return malformed | ~_is_text_kept(source, value, name)
    return malformed


def _count_decimal_places(text: Column) -> Column:
    """Number of decimal places in the text of a number; NULL if the exponent is out of range."""
    fraction = F.length(F.regexp_extract(text, r"\.([0-9]*?)0*(?:[eE ].*)?\z", 1))
    exponent = F.regexp_extract(text, "[eE]([+-]?[0-9]+)", 1).try_cast("int").cast("bigint")
    return F.when(text.rlike("[eE]"), fraction - exponent).otherwise(fraction)


def _is_text_kept(text: Column, value: Column, name: str) -> Column:
    """Whether a binary number preserves the text: few enough digits, or equal when printed back."""
    digits = F.regexp_replace(text, "[eE].*|[^0-9]", "")
    is_zero = digits.rlike(r"\A0*\z")
    few = F.length(F.regexp_replace(digits, r"\A0+", "")) <= F.lit(_BINARY_DIGITS[name])
    same = (_count_decimal_places(text) <= F.lit(_WIDE_PLACES)) & (
        text.try_cast(_WIDE) == value.cast("string").try_cast(_WIDE)
    )
    is_finite = F.abs(value) < F.lit(float("inf"))
    return is_finite & ((value == F.lit(0)) == is_zero) & (few | is_zero | same)
