"""Parse key values, as typed by people or printed by `errata diff`, into the type of an Iceberg column. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from uuid import UUID

from errata.errors import UsageError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema

NULL_TEXT = "null"
"""How NULL is printed."""
_MINUS = "−"
_LIMITS = {"int": 2**31, "long": 2**63}


def build_equality(schema: Schema, column: str, text: str | None) -> BooleanExpression:
    """A predicate that a column equals the value written as text; raises ``UsageError`` if it is no value of the type.

    ``null`` means NULL; in a string column it also matches the word itself.
    """
    from pyiceberg.expressions import EqualTo, IsNull, Or

    kind = str(schema.find_field(column).field_type)
    is_null: BooleanExpression = IsNull(column)  # type: ignore[call-arg]
    if text is None or (text == NULL_TEXT and kind != "string"):
        return is_null
    equal: BooleanExpression = EqualTo(column, _parse_value(column, kind, text))  # type: ignore[call-arg]
    return Or(is_null, equal) if text == NULL_TEXT else equal


def to_key_text(value: Any) -> str | None:
    """A value as text that :func:`build_equality` parses back; None for NULL."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _parse_value(column: str, kind: str, text: str) -> Any:
    name = kind.partition("(")[0].partition("[")[0]
    if name not in _READERS:
        raise UsageError(f"--key {column} was refused; a column of type {kind} cannot be a key")
    expected, read = _READERS[name]
    try:
        return read(kind, text)
    except (ValueError, ArithmeticError, InvalidOperation):
        raise UsageError(f"--key {column}={text!r} was refused; the column is {kind}, expected {expected}") from None


def _strip_separators(text: str) -> str:
    """Undo number formatting: remove correctly placed thousands separators, replace the typographic minus."""
    plain = text.replace(_MINUS, "-")
    whole, dot, places = plain.partition(".")
    if "," in whole:
        if not re.fullmatch(r"-?[0-9]{1,3}(,[0-9]{3})+", whole, re.ASCII):
            raise ValueError(text)
        whole = whole.replace(",", "")
    return whole + dot + places


def _parse_whole(kind: str, text: str) -> int:
    plain = _strip_separators(text)
    if not re.fullmatch(r"-?[0-9]+", plain, re.ASCII):
        raise ValueError(text)
    number = int(plain)
    if not -_LIMITS[kind] <= number < _LIMITS[kind]:
        raise ValueError(text)
    return number


def _parse_decimal(kind: str, text: str) -> Decimal:
    precision, scale = (int(part) for part in re.findall(r"\d+", kind))
    number = Decimal(_strip_separators(text))
    exact = number.quantize(Decimal(1).scaleb(-scale))
    if exact != number or len(exact.as_tuple().digits) > precision:
        raise ValueError(text)
    return exact


def _parse_boolean(_: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _parse_timestamp(_: str, text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return moment


def _parse_timestamptz(_: str, text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


_READERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "string": ("text", lambda _, text: text),
    "int": ("a whole number", _parse_whole),
    "long": ("a whole number", _parse_whole),
    "decimal": ("a number with as many digits", _parse_decimal),
    "float": ("a number", lambda _, text: float(_strip_separators(text))),
    "double": ("a number", lambda _, text: float(_strip_separators(text))),
    "boolean": ("true or false", _parse_boolean),
    "date": ("a day: 2026-01-17", lambda _, text: date.fromisoformat(text)),
    "time": ("a time: 03:04:05", lambda _, text: time.fromisoformat(text)),
    "timestamp": ("a time without zone: 2026-01-17T03:04:05", _parse_timestamp),
    "timestamptz": ("a time: 2026-01-17T03:04:05Z (UTC where it has no zone)", _parse_timestamptz),
    "uuid": ("a UUID", lambda _, text: UUID(text)),
    "binary": ("hexadecimal digits", lambda _, text: bytes.fromhex(text)),
    "fixed": ("hexadecimal digits", lambda _, text: bytes.fromhex(text)),
}
"""By type: the expected form, in words, and the parser."""
