"""Parse values that product files write as text into the type of the column they are compared with. Pure.

A value that does not fit the type is refused rather than cast in the engine: a cast rounds (``1.234`` to two places) or
fails after hours of work.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

TIMES = ("date", "timestamp", "timestamptz")
_INTEGER_BITS = {"int": 31, "long": 63}
_FLOATS = ("float", "double")
_BLANK = r"[\x00-\x20\x7f-\x9f\s]*"
_CURRENT_TIME = re.compile(
    rf"{_BLANK}(?:epoch|now|today|tomorrow|yesterday)(?![A-Za-z])[ \t]*[\w+:/.-]*{_BLANK}", re.ASCII | re.IGNORECASE
)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_REGION = re.compile(r"(?<=\d) ?(?:UTC|GMT|[A-Za-z]+/[A-Za-z_/+-]+)$", re.ASCII)
_DAY = r"\d{4}-\d{2}-\d{2}"
_SHAPES = {
    "date": re.compile(_DAY, re.ASCII),
    "timestamp": re.compile(
        rf"{_DAY}(?:[ T]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,6}})?)?(?:Z|[+-]\d{{2}}:?\d{{2}})?)?", re.ASCII
    ),
}
"""Dates and timestamps that Python and Spark read alike."""
_CASTS = {"timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "long": "BIGINT"}


class BadLiteral(ValueError):
    """The text is not a value of the type; the message says what is expected."""


def is_number(kind: str) -> bool:
    """Whether a column of this Iceberg type holds numbers."""
    return kind in _INTEGER_BITS or kind in _FLOATS or kind.startswith("decimal")


def is_nested(kind: str) -> bool:
    """Whether a column of this Iceberg type holds more than one value."""
    return kind.startswith(("list", "map", "struct"))


def is_current_time(text: str) -> bool:
    """Whether Spark reads a text as the current time when it casts it to a date or timestamp.

    >>> is_current_time(" Today UTC"), is_current_time("today is fine")
    (True, False)
    """
    return _CURRENT_TIME.fullmatch(text) is not None


def find_comparison_flaw(text: str, form: str, kind: str) -> str | None:
    """What a literal compared with a column of this type should be; None when it fits or the type is unknown.

    ``form`` is how it is written: text, number, boolean, date or timestamp. A number may be wider than the column; text
    is cast to the column's type in the engine, so it must be a value of that type.

    >>> find_comparison_flaw("abc", "text", "long")
    'a number, because the column is long'
    """
    if is_nested(kind):
        return f"a part of the column, which is a {kind.partition('<')[0]}"
    if not (is_number(kind) or kind in TIMES or kind in ("boolean", "string", "uuid")):
        return None
    fits = {"number": is_number(kind), "boolean": kind == "boolean"}
    if form in ("date", "timestamp"):
        fits[form] = kind in TIMES
    if form == "text":
        if kind in _FLOATS and _NOT_FINITE.fullmatch(text.strip()):
            return None
        return _find_flaw(_strip_region(text, kind), kind)
    if not fits[form]:
        return _describe_expected(kind)
    if form not in TIMES:
        return None
    own = "date" if form == "date" else "timestamptz"
    return _find_flaw(_strip_region(text, own), own)


def _strip_region(text: str, kind: str) -> str:
    return _REGION.sub("", text) if kind == "timestamptz" else text


def _find_flaw(text: str, kind: str) -> str | None:
    try:
        parse_literal(text, kind)
    except BadLiteral as error:
        return str(error)
    return None


def _describe_expected(kind: str) -> str:
    if kind in ("string", "uuid"):
        return f"text in quotes, because the column is {kind}"
    return str(_find_flaw("?", kind)) + ("" if is_number(kind) else f", because the column is {kind}")


def parse_literal(text: str, kind: str) -> tuple[Decimal | datetime | date | str, str | None]:
    """Parse a text for a column of this type into a sortable value, and the SQL type that the text is cast to.

    The SQL type is None for text, which is compared as it is.

    >>> parse_literal("1.50", "decimal(18, 2)")
    (Decimal('1.50'), 'DECIMAL(3, 2)')
    """
    if is_number(kind):
        return _parse_number(text, kind)
    if kind in TIMES:
        return _parse_time(text, kind), _CASTS.get(kind, "DATE")
    if kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise BadLiteral("true or false")
        return text.lower(), "BOOLEAN"
    if kind in ("string", "uuid"):
        return text, None
    raise BadLiteral("a column of text, numbers, dates, timestamps or true and false")


def _parse_number(text: str, kind: str) -> tuple[Decimal, str]:
    try:
        number = Decimal(text.strip()) if re.fullmatch(r"[-+0-9.eE\s]{1,60}", text) else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or abs(number.adjusted()) > 60:
        raise BadLiteral(f"a number, because the column is {kind}")
    if kind in _FLOATS:
        return number, kind.upper()
    if kind in _INTEGER_BITS:
        bits = _INTEGER_BITS[kind]
        if number != number.to_integral_value() or not -(2**bits) <= number < 2**bits:
            raise BadLiteral(f"a whole number of {bits + 1} bits, because the column is {kind}")
        return number.to_integral_value(), _CASTS.get(kind, "INT")
    _, digits, exponent = number.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise BadLiteral("a number of at most 38 digits")
    return number, f"DECIMAL({precision}, {scale})"


def _parse_time(text: str, kind: str) -> date | datetime:
    try:
        if not _SHAPES["date" if kind == "date" else "timestamp"].fullmatch(text):
            raise ValueError
        if kind == "date":
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        example = "2026-01-31" if kind == "date" else "2026-01-31 12:00:00"
        raise BadLiteral(f"a {kind} such as {example}") from None
    if kind == "timestamp" and moment.tzinfo is not None:
        raise BadLiteral("a timestamp without a zone, because the column has none")
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
