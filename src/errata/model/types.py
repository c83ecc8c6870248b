"""The types that columns of inputs have, as text: Iceberg's names, and Spark's shape for nested ones. Pure.

``decimal(12, 2)``, ``long``, ``timestamptz``, ``array<string>``, ``struct<a:int,b:map<string,long>>``. What a file or a
table holds and what a product file declares are written alike, so comparing text compares types.
"""

from __future__ import annotations

import re
import struct
from datetime import date, datetime
from decimal import Decimal, localcontext

SCALARS = ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary")
_ALIASES = {"bigint": "long", "bool": "boolean", "integer": "int", "list": "array"}
_SPARK = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
_NUMBERS = ("int", "long", "float", "double", "decimal")
_TIMES = ("date", "timestamp", "timestamptz")
_BOUNDS = {"int": 2**31, "long": 2**63}
_WORD = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_DECIMAL = re.compile(r"\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)\s*")
_DIGITS = 38

# Python and Java read these alike; [0-9] because \d has more digits than ASCII in Python
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


def normal_type(text: str) -> str | None:
    """The one way a type is written; None when it is no type.

    >>> normal_type("Decimal(12,2)"), normal_type("list<bigint>"), normal_type("money")
    ('decimal(12, 2)', 'array<long>', None)
    """
    return _written(text, {})


def spark_type(text: str) -> str:
    """A type as Spark's DDL has it.

    >>> spark_type("struct<at:timestamptz,n:long>")
    'struct<`at`:timestamp,`n`:bigint>'
    """
    written = _written(text, _SPARK, quote="`")
    if written is None:
        raise ValueError(f"{text!r} is not a type")
    return written


def _written(text: str, names: dict[str, str], quote: str = "") -> str | None:
    try:
        written, rest = _read(text, names, quote)
    except _NoType:
        return None
    return None if rest.strip() else written


def _read(text: str, names: dict[str, str], quote: str) -> tuple[str, str]:
    word, rest = _word(text)
    kind = _ALIASES.get(word.lower(), word.lower())
    if kind in SCALARS:
        return names.get(kind, kind), rest
    if kind == "decimal":
        found = _DECIMAL.match(rest)
        if not found or not 1 <= int(found[1]) <= _DIGITS or int(found[2]) > int(found[1]):
            raise _NoType(text)
        return f"decimal({int(found[1])}, {int(found[2])})", rest[found.end() :]
    if kind == "array":
        inner, rest = _read(_after("<", rest), names, quote)
        return f"array<{inner}>", _after(">", rest)
    if kind == "map":
        key, rest = _read(_after("<", rest), names, quote)
        value, rest = _read(_after(",", rest), names, quote)
        return f"map<{key},{value}>", _after(">", rest)
    if kind == "struct":
        return _fields(_after("<", rest), names, quote)
    raise _NoType(text)


def _fields(text: str, names: dict[str, str], quote: str) -> tuple[str, str]:
    fields: list[str] = []
    while True:
        name, rest = _word(text)
        inner, rest = _read(_after(":", rest), names, quote)
        fields.append(f"{quote}{name}{quote}:{inner}")
        if not rest.startswith(","):
            return f"struct<{','.join(fields)}>", _after(">", rest)
        text = rest[1:]


def _word(text: str) -> tuple[str, str]:
    found = _WORD.match(text)
    if not found:
        raise _NoType(text)
    return found[1], text[found.end() :]


def _after(mark: str, text: str) -> str:
    if not text.startswith(mark):
        raise _NoType(text)
    return text[1:].lstrip()


def fits(found: str, wanted: str) -> bool:
    """Whether a value of one type is a value of the other without a cast: equal, or what Iceberg calls a promotion.

    >>> fits("int", "long"), fits("decimal(9, 2)", "decimal(12, 2)"), fits("string", "date")
    (True, True, False)
    """
    if found == wanted or (found, wanted) in (("int", "long"), ("float", "double")):
        return True
    if not (found.startswith("decimal") and wanted.startswith("decimal")):
        return False
    (digits, scale), (more, same) = _digits(found), _digits(wanted)
    return scale == same and digits <= more


def is_castable(found: str, wanted: str) -> bool:
    """Whether Spark has a cast, in ANSI mode, that is tried and proven value by value; nested types have none."""
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


def written_form(kind: str) -> str | None:
    """The regular expression that text has as a whole when it is a complete value of this type; None: any text.

    >>> bool(re.fullmatch(written_form("date"), "2023-11-30")), bool(re.fullmatch(written_form("date"), "2023"))
    (True, False)
    """
    return _FORMS.get(kind.partition("(")[0])


def literal_fits(text: str | None, kind: str) -> bool:
    """Whether a default can stand in a column of this type exactly; NULL always can.

    >>> literal_fits("0.5", "decimal(3, 1)"), literal_fits("0.55", "decimal(3, 1)"), literal_fits("soon", "date")
    (True, False, False)
    """
    if text is None or kind == "string":
        return True
    form = written_form(kind)
    if form is None or not re.fullmatch(form, text):
        return False
    try:
        return _is_value(text, kind)
    except (ArithmeticError, ValueError):
        return False


def _is_value(text: str, kind: str) -> bool:
    """Whether text of the right form names a value that the type has."""
    match kind.partition("(")[0]:
        case "int" | "long":
            return -_BOUNDS[kind] <= int(text) < _BOUNDS[kind]
        case "float" | "double":
            # too large does not pack or is infinite, too small is zero
            number: float = struct.unpack(_PACKED[kind], struct.pack(_PACKED[kind], float(text)))[0]
            return abs(number) != float("inf") and (number == 0) == (Decimal(text) == 0)
        case "decimal":
            return _decimal_fits(text, *_digits(kind))
        case "date":
            return date.fromisoformat(text).isoformat() == text
        case "timestamp" | "timestamptz":
            return datetime.fromisoformat(text) is not None
        case _:
            return True


def _decimal_fits(text: str, digits: int, scale: int) -> bool:
    with localcontext(prec=len(text) + 1):  # no digit is rounded away before it is looked at
        scaled = Decimal(text).scaleb(scale)
        return scaled == scaled.to_integral_value() and abs(scaled) < 10**digits


def _digits(kind: str) -> tuple[int, int]:
    found = _DECIMAL.search(kind)
    assert found is not None  # noqa: S101 - only normal types come here
    return int(found[1]), int(found[2])
