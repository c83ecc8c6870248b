"""Convert row values to JSON data and text; numbers that JSON readers may round become text. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pyspark.sql import Row


def format_sum(value: Any) -> str:
    """A sum as text with every digit; None, the sum of no rows, is 0."""
    if value is None:
        return "0"
    return format(value, "f") if isinstance(value, Decimal) else repr(value) if isinstance(value, float) else str(value)


def to_plain_value(value: Any) -> Any:
    """A value as JSON data."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 2**53 else str(value)
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case bytes() | bytearray():
            return bytes(value).hex()
        case Row():
            return {name: to_plain_value(item) for name, item in value.asDict().items()}
        case list():
            return [to_plain_value(item) for item in value]
        case dict():
            return {str(key): to_plain_value(item) for key, item in value.items()}
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)
