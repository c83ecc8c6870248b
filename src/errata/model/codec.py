"""Values to and from plain JSON data, by their declared types. Pure.

One generic pair of functions instead of a ``to_dict`` and ``from_dict`` on every value. Only what the model uses is
supported: dataclasses, enums, tuples, mappings with text keys, optionals and JSON scalars.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

__all__ = ["plain", "typed"]

T = TypeVar("T")
_SCALARS = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """A value as JSON data: dataclasses become objects, tuples become arrays, enums their text."""
    # most of a manifest is text and numbers, and a manifest of 43,800 hours has half a million of them
    if type(value) in _SCALARS:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def typed(kind: type[T], data: Any) -> T:
    """JSON data as a value of ``kind``; raises ``TypeError`` or ``ValueError`` when it does not fit."""
    return typing.cast(T, _typed(kind, data))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _dataclass(kind: Any, data: Any) -> Any:
    hints = _hints(kind)
    unknown = set(data) - set(hints)
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {min(unknown)!r}")
    return kind(**{name: _typed(hints[name], item) for name, item in data.items()})


def _typed(kind: Any, data: Any) -> Any:
    if kind is Any:
        return data
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        (inner,) = (arg for arg in args if arg is not type(None))
        return _typed(inner, data)
    if origin is tuple:
        return tuple(_typed(args[0], item) for item in data)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _typed(args[1], item) for key, item in data.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind, data)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if isinstance(kind, type) and not isinstance(data, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(data).__name__}")
    return data
