"""Row values of tables in memory: their types, their partitions and their text. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from errata.model.partition import Grain

Row = Mapping[str, Any]
"""Column → value, as Python has it: ``date``, ``Decimal``, ``str`` …"""

_TRANSFORMS = {"hour": Grain.HOUR, "day": Grain.DAY, "month": Grain.MONTH, "year": Grain.YEAR}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "date": (date,),
    "timestamp": (datetime,),
    "timestamptz": (datetime,),
    "binary": (bytes,),
}


def fit_value(value: Any, kind: str) -> Any:
    """The value as a column of this Iceberg type holds it; raises ``TypeError`` unless it fits without a change.

    >>> fit_value(3, "decimal(12, 2)"), fit_value(None, "date")
    (Decimal('3.00'), None)
    """
    decimal = _DECIMAL.fullmatch(kind)
    if value is None or (kind not in _KINDS and decimal is None):
        return value
    if decimal is not None:
        return _fit_decimal(value, int(decimal[1]), int(decimal[2]))
    is_instant = isinstance(value, datetime)
    fits = isinstance(value, _KINDS[kind]) and (kind == "boolean") == isinstance(value, bool)
    if kind == "date" and is_instant:
        fits = False
    if is_instant and kind in ("timestamp", "timestamptz"):
        fits = (value.tzinfo is not None) == (kind == "timestamptz")
    if not fits:
        raise TypeError(f"expected {kind}, found {type(value).__name__} {value!r}")
    if kind == "timestamptz":
        return value.astimezone(UTC)
    return float(value) if kind in ("float", "double") else value


def _fit_decimal(value: Any, precision: int, scale: int) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise TypeError(f"expected decimal({precision}, {scale}), found {type(value).__name__} {value!r}")
    try:
        exact = Decimal(value).quantize(Decimal(1).scaleb(-scale))
    except InvalidOperation:
        exact = Decimal("NaN")
    if exact != value or len(exact.as_tuple().digits) > precision:
        raise TypeError(f"expected decimal({precision}, {scale}), found {value}, which does not fit exactly")
    return exact


def parse_value(value: Any, kind: str) -> Any:
    """Like :func:`fit_value`, and also reads dates and times written as ISO text, and decimals written as text."""
    if isinstance(value, str):
        if kind == "date":
            value = date.fromisoformat(value)
        elif kind in ("timestamp", "timestamptz"):
            value = datetime.fromisoformat(value)
        elif _DECIMAL.fullmatch(kind):
            value = Decimal(value)
    return fit_value(value, kind)


def stored_grain(transform: str, column_type: str) -> Grain | None:
    """Width of the partitions that a transform of a table's spec makes; None if no product can have them."""
    if transform in _TRANSFORMS:
        return _TRANSFORMS[transform]
    if transform != "identity":
        return None
    return Grain.DAY if column_type == "date" else Grain.VALUE if column_type in ("string", "int", "long") else None


def digest_rows(rows: Iterable[Row], columns: Sequence[str]) -> tuple[int, str, str]:
    """Row count and two sums of 64-bit hashes of the rows: equal for equal rows in any order."""
    count, sums = 0, [0, 0]
    for row in rows:
        count += 1
        text = repr([_comparable(row.get(name)) for name in columns]).encode()
        for n, salt in enumerate((b"a", b"b")):
            sums[n] += int.from_bytes(hashlib.sha256(salt + text).digest()[:8], signed=True)
    return count, str(sums[0]), str(sums[1])


def _comparable(value: Any) -> Any:
    match value:
        case Decimal():
            return format(value.normalize(), "f")
        case float():
            return 0.0 if value == 0 else value
        case dict():
            return sorted((str(key), _comparable(item)) for key, item in value.items())
        case list() | tuple():
            return [_comparable(item) for item in value]
        case _:
            return value


def freeze_value(value: Any) -> Any:
    """A value to group or look up by: one form for equal values, hashable."""
    return repr(_comparable(value)) if isinstance(value, (dict, list, Decimal, float)) else value


def to_plain(value: Any) -> Any:
    """A value as JSON data; numbers that JSON readers may round become text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 2**53 else str(value)
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case bytes():
            return value.hex()
        case list() | tuple():
            return [to_plain(item) for item in value]
        case dict():
            return {str(key): to_plain(item) for key, item in value.items()}
        case _:
            return value.isoformat()
