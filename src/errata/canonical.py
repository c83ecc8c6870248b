"""Conversion of values to JSON data and back, canonical JSON bytes (RFC 8785), and digests. Pure.

:func:`to_plain` and :func:`from_plain` replace a ``to_dict`` and ``from_dict`` on every value. They support only what
the model uses: dataclasses, enums, tuples, mappings with text keys, optionals and JSON scalars.

A field declared with :data:`LEFT_OUT` is left out while it has its default. Values that were written before the field
existed, and values that do not use it, have the same bytes and the same digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

import rfc8785

__all__ = ["LEFT_OUT", "canonical_bytes", "digest_of", "from_plain", "parse_strict_json", "sha256", "to_plain"]


T = TypeVar("T")
LEFT_OUT: Mapping[str, Any] = types.MappingProxyType({"left_out": True})
"""Metadata of a field that was added to a sealed value: ``field(default=None, metadata=LEFT_OUT)``."""
_SCALARS = frozenset({str, int, bool, type(None)})


def to_plain(value: Any) -> Any:
    """A value as JSON data: dataclasses become objects, tuples become arrays, enums their text."""
    # first, for speed: most of a manifest is text and numbers, half a million of them for 43,800 hours
    if type(value) in _SCALARS:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        plain = {name: to_plain(getattr(value, name)) for name in _field_names(kind)}
        for name, default in _find_left_out(kind).items():
            if plain[name] == default:
                del plain[name]
        return plain
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(item) for item in value]
    return value


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _find_left_out(kind: Any) -> dict[str, Any]:
    """Default as JSON data of every field that is left out while it has it."""
    return {
        field.name: to_plain(field.default if field.default_factory is dataclasses.MISSING else field.default_factory())
        for field in dataclasses.fields(kind)
        if "left_out" in field.metadata
    }


def from_plain(kind: type[T], data: Any) -> T:
    """Build a value of ``kind`` from JSON data; raises ``TypeError`` or ``ValueError`` when it does not fit."""
    return typing.cast(T, _build_value(kind, data))


@cache
def _type_hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build_dataclass(kind: Any, data: Any) -> Any:
    hints = _type_hints(kind)
    unknown = set(data) - set(hints)
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {min(unknown)!r}")
    return kind(**{name: _build_value(hints[name], item) for name, item in data.items()})


def _build_value(kind: Any, data: Any) -> Any:
    if kind is Any:
        return data
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        (inner,) = (arg for arg in args if arg is not type(None))
        return _build_value(inner, data)
    if origin is tuple:
        return tuple(_build_value(args[0], item) for item in data)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _build_value(args[1], item) for key, item in data.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, data)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if isinstance(kind, type) and not isinstance(data, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(data).__name__}")
    return data


_SAFE_DIGITS = 15  # every integer of this length is below 2^53


def canonical_bytes(value: Any) -> bytes:
    """Canonical JSON bytes of a value made of dataclasses and JSON data."""
    data = to_plain(value)
    return _encode_ascii(data) or rfc8785.dumps(data)


def _encode_ascii(data: Any) -> bytes | None:
    """Fast path for ASCII text, safe integers, true, false and null; None when the data has anything else."""
    try:
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        if not text.isascii():
            return None
        json.loads(text, parse_float=_refuse_number, parse_int=_require_safe_integer)
    except (TypeError, ValueError, RecursionError):
        return None
    return text.encode("ascii")


def _require_safe_integer(digits: str) -> int:
    if len(digits) > _SAFE_DIGITS:
        raise ValueError(digits)
    return 0


def _refuse_number(digits: str) -> float:
    raise ValueError(digits)


def parse_strict_json(content: bytes) -> Any:
    """Parse JSON that every reader reads the same way: no duplicate keys, no NaN, no lone surrogates.

    Raises ``ValueError`` for anything else.
    """
    text = content.decode("utf-8")
    data = json.loads(text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_number)
    # only an escape can give a lone surrogate, which fails to encode
    if "\\ud" in text.lower():
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    return data


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def sha256(content: bytes) -> str:
    """SHA-256 as 64 hex digits, without a prefix."""
    return hashlib.sha256(content).hexdigest()


def digest_of(value: Any) -> str:
    """The SHA-256 of a value's canonical bytes."""
    return sha256(canonical_bytes(value))


def parse_digest(text: str) -> str:
    """A digest as a person or a program wrote it, in the form in which digests are compared.

    >>> parse_digest(" sha256:8B0468F8 ")
    '8b0468f8'
    """
    return text.strip().removeprefix("sha256:").lower()
