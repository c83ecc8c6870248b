"""Types of input columns as text: Iceberg's names, and Spark's notation for nested types. Pure.

``decimal(12, 2)``, ``long``, ``timestamptz``, ``array<string>``, ``struct<a:int,b:map<string,long>>``. Files, tables
and product files use the same notation, so comparing text compares types.
"""

from __future__ import annotations

import re
import struct
from datetime import date, datetime
from decimal import Decimal, localcontext

SCALARS = ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary")
_ALIASES = {"bigint": "long", "bool": "boolean", "integer": "int", "list": "array"}
_SPARK = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
_FROM_SPARK = {name: kind for kind, name in _SPARK.items()} | {"smallint": "int", "tinyint": "int"}
PARTITION_TYPES = ("date", "timestamp", "timestamptz", "string", "int", "long")
"""Types that the partition column of a target may have."""
_NUMBERS = ("int", "long", "float", "double", "decimal")
_TIMES = ("date", "timestamp", "timestamptz")
_BOUNDS = {"int": 2**31, "long": 2**63}
_WORD = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_DECIMAL = re.compile(r"\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)\s*")
_DIGITS = 38

# valid in both Python and Java; [0-9] because \d matches more than ASCII digits in Python
_WHOLE = "[+-]?[0-9]+"
_REAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = _DATE + r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_ZONE = "(?:Z|[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9]|18:00))"
_FORMS = {
    "boolean": "true|false",
    "int": _WHOLE,
    "long": _WHOLE,
    "float": _REAL,
    "double": _REAL,
    "decimal": _REAL,
    "date": _DATE,
    "timestamp": _TIMESTAMP,
    "timestamptz": _TIMESTAMP + _ZONE,
}
_PACKED = {"float": "<f", "double": "<d"}


class _NoType(ValueError):
    pass


def normalize_type(text: str) -> str | None:
    """Canonical text of a type; None if it is not a type.

    >>> normalize_type("Decimal(12,2)"), normalize_type("list<bigint>"), normalize_type("money")
    ('decimal(12, 2)', 'array<long>', None)
    """
    return _render_type(text, {})


def to_spark_type(text: str) -> str:
    """The type in Spark DDL.

    >>> to_spark_type("struct<at:timestamptz,n:long>")
    'struct<`at`:timestamp,`n`:bigint>'
    """
    written = _render_type(text, _SPARK, quote="`")
    if written is None:
        raise ValueError(f"{text!r} is not a type")
    return written


def to_spark_scalar(text: str) -> str | None:
    """The Spark name of a plain type; None for nested and unknown types.

    >>> to_spark_scalar("timestamptz"), to_spark_scalar("list<int>"), to_spark_scalar("uuid")
    ('timestamp', None, None)
    """
    written = _render_type(text, _SPARK)
    return None if written is None or "<" in written else written


def from_spark_scalar(simple: str) -> str:
    """The type of a plain column that Spark shows as ``simple``; other text stays as it is.

    >>> from_spark_scalar("bigint"), from_spark_scalar("decimal(9,4)")
    ('long', 'decimal(9,4)')
    """
    return _FROM_SPARK.get(simple, simple)


def _render_type(text: str, names: dict[str, str], quote: str = "") -> str | None:
    try:
        written, rest = _parse_type(text, names, quote)
    except _NoType:
        return None
    return None if rest.strip() else written


def _parse_type(text: str, names: dict[str, str], quote: str) -> tuple[str, str]:
    word, rest = _parse_word(text)
    kind = _ALIASES.get(word.lower(), word.lower())
    if kind in SCALARS:
        return names.get(kind, kind), rest
    if kind == "decimal":
        found = _DECIMAL.match(rest)
        if not found or not 1 <= int(found[1]) <= _DIGITS or int(found[2]) > int(found[1]):
            raise _NoType(text)
        return f"decimal({int(found[1])}, {int(found[2])})", rest[found.end() :]
    if kind == "array":
        inner, rest = _parse_type(_skip_mark("<", rest), names, quote)
        return f"array<{inner}>", _skip_mark(">", rest)
    if kind == "map":
        key, rest = _parse_type(_skip_mark("<", rest), names, quote)
        value, rest = _parse_type(_skip_mark(",", rest), names, quote)
        return f"map<{key},{value}>", _skip_mark(">", rest)
    if kind == "struct":
        return _parse_fields(_skip_mark("<", rest), names, quote)
    raise _NoType(text)


def _parse_fields(text: str, names: dict[str, str], quote: str) -> tuple[str, str]:
    fields: list[str] = []
    while True:
        name, rest = _parse_word(text)
        inner, rest = _parse_type(_skip_mark(":", rest), names, quote)
        fields.append(f"{quote}{name}{quote}:{inner}")
        if not rest.startswith(","):
            return f"struct<{','.join(fields)}>", _skip_mark(">", rest)
        text = rest[1:]


def _parse_word(text: str) -> tuple[str, str]:
    found = _WORD.match(text)
    if not found:
        raise _NoType(text)
    return found[1], text[found.end() :]


def _skip_mark(mark: str, text: str) -> str:
    if not text.startswith(mark):
        raise _NoType(text)
    return text[1:].lstrip()


def is_assignable(found: str, wanted: str) -> bool:
    """Whether a type fits another without a cast: they are equal, or Iceberg allows the promotion.

    >>> is_assignable("int", "long"), is_assignable("decimal(9, 2)", "decimal(12, 2)"), is_assignable("string", "date")
    (True, True, False)
    """
    if found == wanted or (found, wanted) in (("int", "long"), ("float", "double")):
        return True
    if not (found.startswith("decimal") and wanted.startswith("decimal")):
        return False
    (digits, scale), (more, same) = _parse_precision(found), _parse_precision(wanted)
    return scale == same and digits <= more


def is_castable(found: str, wanted: str) -> bool:
    """Whether Spark has an ANSI cast, which is checked value by value; nested types have none."""
    one, other = (kind.partition("(")[0] for kind in (found, wanted))
    if one not in (*SCALARS, "decimal") or other not in (*SCALARS, "decimal"):
        return False
    if one == other or other == "string":
        return one != "binary" or other == "binary"
    if one == "string":
        return True
    if one in _NUMBERS:
        return other in (*_NUMBERS, "boolean", "timestamptz")
    return (one in _TIMES and other in _TIMES) or (one == "boolean" and other in _NUMBERS)


def find_literal_pattern(kind: str) -> str | None:
    """Regular expression that complete literals of this type match in full; None: any text.

    >>> [bool(re.fullmatch(find_literal_pattern("date"), text)) for text in ("2023-11-30", "2023")]
    [True, False]
    """
    return _FORMS.get(kind.partition("(")[0])


def is_valid_literal(text: str | None, kind: str) -> bool:
    """Whether a column of this type can hold the default exactly; NULL always fits.

    >>> is_valid_literal("0.5", "decimal(3, 1)"), is_valid_literal("0.55", "decimal(3, 1)")
    (True, False)
    """
    if text is None or kind == "string":
        return True
    form = find_literal_pattern(kind)
    if form is None or not re.fullmatch(form, text):
        return False
    try:
        return _is_in_range(text, kind)
    except (ArithmeticError, ValueError):
        return False


def _is_in_range(text: str, kind: str) -> bool:
    """Whether text of the right form is within the type's range."""
    match kind.partition("(")[0]:
        case "int" | "long":
            return -_BOUNDS[kind] <= int(text) < _BOUNDS[kind]
        case "float" | "double":
            # too large fails to pack or is infinite, too small becomes zero
            number: float = struct.unpack(_PACKED[kind], struct.pack(_PACKED[kind], float(text)))[0]
            return abs(number) != float("inf") and (number == 0) == (Decimal(text) == 0)
        case "decimal":
            return _is_exact_decimal(text, *_parse_precision(kind))
        case "date":
            return date.fromisoformat(text).isoformat() == text
        case "timestamp" | "timestamptz":
            return datetime.fromisoformat(text) is not None
        case _:
            return True


def _is_exact_decimal(text: str, digits: int, scale: int) -> bool:
    with localcontext(prec=len(text) + 1):  # no digit is rounded away before the check
        scaled = Decimal(text).scaleb(scale)
        return scaled == scaled.to_integral_value() and abs(scaled) < 10**digits


def _parse_precision(kind: str) -> tuple[int, int]:
    found = _DECIMAL.search(kind)
    assert found is not None  # noqa: S101 - only normal types come here
    return int(found[1]), int(found[2])
