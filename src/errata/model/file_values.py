"""Types of values in project files, each with its grammar and JSON schema. Pure.

Every error states only what was expected; what was found is added from the file, so that a value from the environment
cannot get into a message.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from errata.model.duration import DURATION, LENGTH, to_days, to_seconds
from errata.model.file_keys import Value
from errata.model.types import SCALARS, normalize_type

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
DECIMAL = r"-?[0-9]{1,30}(\.[0-9]{1,18})?"
AMOUNT = r"[0-9]{1,30}(\.[0-9]{1,18})?%?"
MAX_NAME = 400
"""Most characters of a name or a number; ``catalog.namespace.table`` is three names."""
MAX_QUERY = 10_000
MAX_EXPRESSION = 2_000
MAX_SAFE_INTEGER = 2**53 - 1
_DIGITS = 25
_CENTURY = 36_600
_LONGEST_HOLD = 30 * 86_400
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@dataclass(frozen=True, slots=True)
class PlainScalar:
    """An unquoted number or boolean, as written."""

    kind: str
    text: str


class EnvText(str):
    """Text with a substituted variable; accepted both as text and as a number."""

    __slots__ = ()


def expected(what: str) -> ValueError:
    """The error ``expected …``."""
    return ValueError(f"expected {what}")


def _require_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise expected(what)
    return str(value)


def _require_scalar(value: Any, what: str) -> str:
    return value.text if isinstance(value, PlainScalar) else _require_text(value, what)


def _build_matcher(grammar: str, what: str, *, numbers: bool = False) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        text = _require_scalar(value, what) if numbers else _require_text(value, what)
        if len(text) > MAX_NAME or not re.fullmatch(grammar, text, re.ASCII):
            raise expected(what)
        return text

    return check


def _parse_text(value: Any) -> str:
    return _require_text(value, "text")


def _parse_scalar_text(value: Any) -> str:
    return _require_scalar(value, "a single value")


def _parse_line(value: Any, most: int = 200) -> str:
    text = _require_text(value, "one line of text")
    if not text.strip() or not text.isprintable() or len(text) > most:
        raise expected(f"one line of text, at most {most:,} characters")
    return text


def _parse_credential(value: Any) -> str:
    # AWS session tokens and URLs with certificates are long
    return _parse_line(value, 8_000)


def _parse_setting(value: Any) -> str:
    """Parse the value of a setting: one line, may be empty."""
    text = _require_scalar(value, "a single value")
    if not text.isprintable() or len(text) > 8_000:
        raise expected("one line of text, at most 8,000 characters")
    return text


def _parse_title(value: Any) -> str:
    # `--accept NAME=WHY` splits at the equals sign; `empty` is the name of the built-in check
    what = 'a name: one line of text without "=", other than "empty"'
    text = _parse_line(value)
    if "=" in text or text == "empty":
        raise expected(what)
    # composed form, so that a name typed again is equal
    return unicodedata.normalize("NFC", text)


def _parse_input_name(value: Any) -> str:
    what = "a name that can be a parameter of the transform, other than ctx"
    text = _require_text(value, what)
    if len(text) > MAX_NAME or not re.fullmatch(IDENTIFIER, text, re.ASCII) or keyword.iskeyword(text) or text == "ctx":
        raise expected(what)
    return text


def _parse_key_text(value: Any) -> str:
    """Parse the path of a key file, or a key as text; only a key from the environment may have line breaks."""
    text = _require_text(value, "the file of a key")
    if not text.strip() or len(text) > 8_000 or not (text.isprintable() or isinstance(value, EnvText)):
        raise expected("the file of a key")
    return text


def _parse_count(value: Any) -> int:
    what = "a whole number from 1"
    text = _require_scalar(value, what) if isinstance(value, (PlainScalar, EnvText)) else ""
    if not re.fullmatch(r"[1-9][0-9]{0,14}", text, re.ASCII):
        raise expected(what)
    return int(text)


def _parse_bytes(value: Any) -> int:
    what = "a number of bytes such as 1000000 or 500GB"
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMGT]i?B|)", _require_scalar(value, what), re.ASCII)
    if not found or int(found[1]) < 1:
        raise expected(what)
    return int(found[1]) * (_UNITS | _BINARY_UNITS)[found[2]]


def _parse_length(value: Any) -> int:
    what = "a whole number and s, min, h or d, such as 5min"
    text = _require_text(value, what)
    if not re.fullmatch(LENGTH, text, re.ASCII) or not to_seconds(text):
        raise expected(what)
    return to_seconds(text)


def _parse_hold(value: Any) -> str:
    what = "a whole number and s, min, h or d, such as 30min"
    text = _require_text(value, what)
    if not re.fullmatch(LENGTH, text, re.ASCII) or not 0 < to_seconds(text) <= _LONGEST_HOLD:
        raise expected(f"{what}, at most 30d")
    return text


def _parse_wave_size(value: Any) -> str:
    what = "a number of partitions, at least 1, or a whole number and h, d, w, mo or y, such as 30d"
    text = _require_scalar(value, what)
    if not re.fullmatch(WAVE_SIZE, text, re.ASCII):
        raise expected(what)
    return text


def _parse_duration(value: Any) -> str:
    what = "a whole number and h, d, w, mo or y, such as 3d"
    text = _require_scalar(value, what)
    if not re.fullmatch(DURATION, text, re.ASCII):
        raise expected(what)
    if to_days(text) > _CENTURY:
        raise expected("at most 100 years")
    return text


def _parse_query(value: Any) -> str:
    text = _require_text(value, "an SQL query")
    if not text.strip() or len(text) > MAX_QUERY:
        raise expected(f"an SQL query of at most {MAX_QUERY} characters")
    return text


def _parse_expression(value: Any) -> str:
    text = _require_text(value, "an SQL expression").strip()
    if not text or len(text) > MAX_EXPRESSION:
        raise expected(f"an SQL expression of at most {MAX_EXPRESSION:,} characters")
    return text


def _parse_bool(value: Any) -> bool:
    if not isinstance(value, PlainScalar) or value.kind != "bool":
        raise expected("true or false")
    return value.text.lower() == "true"


def _parse_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _parse_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_parse_json(item) for item in value]
    return _to_number(value) if isinstance(value, PlainScalar) else value


def _to_number(value: PlainScalar) -> bool | int | float:
    if value.kind == "bool":
        return value.text.lower() == "true"
    if value.kind == "int":
        return _parse_integer(value.text)
    number = float("inf") if "n" in value.text.lower() else float(value.text)
    if not isfinite(number):
        raise expected("finite numbers")
    # canonical JSON writes 1.0 as 1, so a run would get a different type than a trial
    return _require_safe_integer(int(number)) if number.is_integer() else number


def _parse_integer(text: str) -> int:
    if re.fullmatch(r"[-+]?0[0-9]+", text):
        raise expected("numbers without leading zeros, which some readers take for octal; quote text")
    if len(text) > _DIGITS:
        raise expected("numbers below 2^53; quote longer ones")
    return _require_safe_integer(int(text, 0) if text[:2] in ("0o", "0x") else int(text))


def _require_safe_integer(number: int) -> int:
    if abs(number) > MAX_SAFE_INTEGER:
        raise expected("numbers below 2^53; quote longer ones")
    return number


def _parse_source_type(value: Any) -> str:
    """Parse the type of an input column, nested types included."""
    what = f"one of {', '.join(SCALARS)}, decimal(p,s), array<…>, map<…,…> or struct<name:…>"
    found = normalize_type(_require_text(value, what))
    if found is None:
        raise expected(what)
    return found


def _parse_column_type(value: Any) -> str:
    """Parse an Iceberg type in Iceberg's own spelling."""
    what = f"one of {', '.join(_PLAIN_TYPES.split('|'))} or decimal(p,s)"
    found = re.fullmatch(_TYPE, _require_text(value, what), re.ASCII)
    if not found:
        raise expected(what)
    if found[2] is None:
        return found[0]
    precision, scale = int(found[2]), int(found[3])
    if not 1 <= precision <= 38 or scale > precision:
        raise expected("decimal(p,s) with 1 ≤ p ≤ 38 and s ≤ p")
    return f"decimal({precision}, {scale})"


_SINGLE = {"type": ["string", "number", "boolean"]}


def _build_pattern(grammar: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{grammar}$"}


def _build_named(grammar: str, what: str) -> Value:
    return Value(_build_matcher(grammar, what), _build_pattern(grammar))


def _build_numeric(grammar: str, what: str) -> Value:
    schema = {"anyOf": [{"type": "number"}, _build_pattern(grammar)]}
    return Value(_build_matcher(grammar, what, numbers=True), schema)


_TABLE = rf"{IDENTIFIER}(\.{IDENTIFIER}){{2,}}"
_WAREHOUSE_NAME = r"[A-Za-z_][A-Za-z0-9_$]*"
_CALL = rf"{IDENTIFIER}(\.{IDENTIFIER})*:{IDENTIFIER}"
_SQL_FILE = r"([A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.sql"
_PRODUCT = rf"{IDENTIFIER}(\.{IDENTIFIER})*"
_PLAIN_TYPES = "boolean|int|long|double|string|date|timestamp|timestamptz"
_TYPE = rf"({_PLAIN_TYPES}|decimal\((\d{{1,2}}), ?(\d{{1,2}})\))"
_SPAN = r"([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)"
_SETTING = r"[A-Za-z][A-Za-z0-9_-]*([./:][A-Za-z0-9*_-]+)*"
_SLUG = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
_PERSON = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}"

_TEXT = {"type": "string", "minLength": 1}

Text = Annotated[str, Value(_parse_text, {"type": "string"})]
ScalarText = Annotated[str, Value(_parse_scalar_text, _SINGLE)]
Line = Annotated[str, Value(_parse_line, _TEXT)]
Credential = Annotated[str, Value(_parse_credential, _TEXT)]
SettingName = Annotated[str, _build_named(_SETTING, "the name of a setting, such as spark.sql.ansi.enabled")]
Setting = Annotated[str, Value(_parse_setting, _SINGLE)]
Title = Annotated[str, Value(_parse_title, _build_pattern("[^=]+"))]
YesNo = Annotated[bool, Value(_parse_bool, {"type": "boolean"})]
KeyText = Annotated[str, Value(_parse_key_text, _TEXT)]
Count = Annotated[int, Value(_parse_count, {"type": "integer", "minimum": 1})]
Bytes = Annotated[
    int,
    Value(_parse_bytes, {"anyOf": [{"type": "integer", "minimum": 1}, _build_pattern("[0-9]{1,15} ?[KMGT]i?B")]}),
]
Slug = Annotated[str, _build_named(_SLUG, "a name of letters, digits, _ and -, with a letter first")]
Identifier = Annotated[str, _build_named(IDENTIFIER, "a name of letters, digits and _")]
Column = Annotated[str, _build_named(IDENTIFIER, "a column name of letters, digits and _")]
SourceType = Annotated[str, Value(_parse_source_type, _TEXT)]
ColumnType = Annotated[str, Value(_parse_column_type, _build_pattern(_TYPE))]
InputName = Annotated[str, Value(_parse_input_name, _build_pattern(IDENTIFIER))]
PersonName = Annotated[str, _build_named(_PERSON, "a person's name of letters, digits and . _ @ + -")]
ProductName = Annotated[str, _build_named(_PRODUCT, "a name such as fin.daily_revenue")]
# no pattern in the schema, because ${NAME} is allowed here and substituted before the grammar is checked
TableName = Annotated[str, Value(_build_matcher(_TABLE, "catalog.namespace.table"), {"type": "string"})]
# as a warehouse spells it; quoted names with other characters are not supported
WarehouseTable = Annotated[
    str,
    _build_named(rf"{_WAREHOUSE_NAME}(\.{_WAREHOUSE_NAME})?", "a table, or schema.table, of letters, digits, _ and $"),
]
TableColumn = Annotated[
    str, Value(_build_matcher(rf"{_TABLE}\.{IDENTIFIER}", "catalog.namespace.table.column"), {"type": "string"})
]
Call = Annotated[str, _build_named(_CALL, "package.module:function")]
SqlFile = Annotated[str, _build_named(_SQL_FILE, "a file of the project such as transforms/daily_revenue.sql")]
Duration = Annotated[str, Value(_parse_duration, _build_pattern(DURATION))]
Length = Annotated[int, Value(_parse_length, _build_pattern(LENGTH))]
LengthText = Annotated[
    str,
    Value(
        _build_matcher(LENGTH, "a whole number and s, min, h or d, such as 5min", numbers=True), _build_pattern(LENGTH)
    ),
]
WAVE_SIZE = r"[1-9]\d{0,5}(h|d|w|mo|y)?"
WaveSize = Annotated[
    str, Value(_parse_wave_size, {"anyOf": [{"type": "integer", "minimum": 1}, _build_pattern(WAVE_SIZE)]})
]
HoldText = Annotated[str, Value(_parse_hold, _build_pattern(LENGTH))]
Span = Annotated[str, _build_named(_SPAN, "hours such as 22:00-06:00; 24:00 may end them")]
Query = Annotated[str, Value(_parse_query, _TEXT)]
Expression = Annotated[str, Value(_parse_expression, _TEXT)]
DecimalText = Annotated[str, _build_numeric(DECIMAL, "a decimal number such as 0.5")]
Amount = Annotated[str, _build_numeric(AMOUNT, "a decimal number or a percentage, such as 0.5 or 5%")]
Json = Annotated[Any, Value(_parse_json, {})]
