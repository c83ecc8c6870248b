"""Values that product files write as text, in the type of the column they are compared with. Pure.

A value that is not one of the type is refused, rather than cast in the engine: a cast rounds (``1.234`` to two
places) or fails after hours of work.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

__all__ = ["TIMES", "BadLiteral", "is_nested", "is_number", "literal_of"]

TIMES = ("date", "timestamp", "timestamptz")
_WHOLE = {"int": 31, "long": 63}
_FLOATS = ("float", "double")
_CASTS = {"timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "long": "BIGINT"}


class BadLiteral(ValueError):
    """The text is no value of the type; the message says what is."""


def is_number(kind: str) -> bool:
    """Whether a column of this Iceberg type holds numbers."""
    return kind in _WHOLE or kind in _FLOATS or kind.startswith("decimal")


def is_nested(kind: str) -> bool:
    """Whether a column of this Iceberg type holds more than one value."""
    return kind.startswith(("list", "map", "struct"))


def literal_of(text: str, kind: str) -> tuple[Decimal | datetime | date | str, str | None]:
    """What a text means for a column of this type, in a form that sorts, and the SQL type its text is cast to.

    The SQL type is None for text, which is compared as it is.

    >>> literal_of("1.50", "decimal(18, 2)")
    (Decimal('1.50'), 'DECIMAL(3, 2)')
    """
    if is_number(kind):
        return _number(text, kind)
    if kind in TIMES:
        return _time(text, kind), _CASTS.get(kind, "DATE")
    if kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise BadLiteral("true or false")
        return text.lower(), "BOOLEAN"
    if kind in ("string", "uuid"):
        return text, None
    raise BadLiteral("a column of text, numbers, dates, timestamps or true and false")


def _number(text: str, kind: str) -> tuple[Decimal, str]:
    try:
        number = Decimal(text.strip()) if re.fullmatch(r"[-+0-9.eE\s]{1,60}", text) else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or abs(number.adjusted()) > 60:
        raise BadLiteral(f"a number, because the column is {kind}")
    if kind in _FLOATS:
        return number, kind.upper()
    if kind in _WHOLE:
        bits = _WHOLE[kind]
        if number != number.to_integral_value() or not -(2**bits) <= number < 2**bits:
            raise BadLiteral(f"a whole number of {bits + 1} bits, because the column is {kind}")
        return number.to_integral_value(), _CASTS.get(kind, "INT")
    _, digits, exponent = number.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise BadLiteral("a number of at most 38 digits")
    return number, f"DECIMAL({precision}, {scale})"


def _time(text: str, kind: str) -> date | datetime:
    try:
        if kind == "date":
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        example = "2026-01-31" if kind == "date" else "2026-01-31 12:00:00"
        raise BadLiteral(f"a {kind} such as {example}") from None
    if kind == "timestamp" and moment.tzinfo is not None:
        raise BadLiteral("a timestamp without a zone, because the column has none")
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
