"""Read a tree as a value whose fields declare the keys: derive a strict model from its annotations, and validate."""

from __future__ import annotations

import dataclasses
import types
import warnings
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from errata.model.file_keys import NOT_A_KEY, AtLeast, Key, OneOf, Value
from errata.model.file_values import EnvText, PlainScalar
from errata.project.problems import Path, ProblemReport
from errata.project.yaml.problem_texts import (
    find_nearest,
    find_nearest_key,
    list_choices,
    report_error,
    strip_branches,
)
from errata.project.yaml.tree import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode

V = TypeVar("V")

_MAX_READS = 8
"""Readings of a file with wrong keys: leaving out a needed key makes its mapping wrong, and so on to the top."""

_GROUPS = {
    "chunks": "How partitions are packed into chunks: towards a duration by measured speed, or to a fixed size.",
    "determinism": "Check at the start of a run that the same input gives the same output.",
    "diff": "How old and new rows are compared.",
    "partition": "The partition column of the target and its grain.",
    "price": "The price of compute, for estimates.",
    "spark": "The Spark session of workers.",
    "storage": "Object stores, for catalogs, source files and Spark.",
    "burst": "After this many chunks, no new one starts for the pause.",
}
"""Keys that only group others, for editors."""


class _Mapping(BaseModel):
    """Keys of one place in a file; no other key is known there."""

    # only the model of a whole file is built: it contains those of its parts
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)


def read_value(kind: Callable[..., V], root: Node, report: ProblemReport) -> V | None:
    """The file as a value; with problems in the report, what is left without the wrong keys, or None.

    Wrong keys are repaired in the tree or taken out of it, and the rest is read again, so that one pass finds the
    problems of the whole file and not only those of its form.
    """
    model = derive_model(kind)
    for attempt in range(_MAX_READS):
        try:
            found: V = _build(kind, model.model_validate(_to_data(root)))
        except ValidationError as refusals:
            errors = refusals.errors(include_url=False, include_input=False)
        else:
            return found
        for error in errors if attempt == 0 else ():  # later ones follow from what was taken out
            report_error(model, error, report)
        # misspelt keys first: one of them may be the key that is missing
        for error in sorted(errors, key=lambda one: one["type"] != "extra_forbidden"):
            place = _repair(model, root, error)
            if place is None:
                return None
            report.misread.add(place)
    return None


def _repair(model: type[BaseModel], root: Node, error: Mapping[str, Any]) -> Path | None:
    """Put what was most likely meant in place of a wrong key or value, or take it out, so that the rest can be read.

    Returns the position that is in doubt from now on, None if nothing is left to read.
    """
    path, kind = strip_branches(error["loc"]), error["type"]
    if path[-1:] == ("[key]",):
        path = path[:-1]
    node = _look_up(root, path)
    if kind == "literal_error" and isinstance(node, ScalarNode):
        meant = find_nearest(node.text, list_choices(error))
        if meant is not None:
            node.text = node.value = meant
            return path
    while path and not isinstance(path[-1], str):
        path = path[:-1]
    holder = _look_up(root, path[:-1])
    if not path or not isinstance(holder, MappingNode):
        return None
    name = str(path[-1])
    if kind == "missing":
        # any text will do: problems with it are not reported
        holder.entries.setdefault(name, MappingEntry(holder.mark, ScalarNode(holder.mark, "missing", "str", "missing")))
        return path
    entry = holder.entries.pop(name, None)
    meant = find_nearest_key(model, path) if kind == "extra_forbidden" else None
    if meant is not None and entry is not None:
        holder.entries.setdefault(meant, entry)
    # at the top of a file only the key itself is in doubt, not the whole file
    return path[:-1] or path


def _look_up(node: Node | None, path: Path) -> Node | None:
    for step in path:
        match node, step:
            case MappingNode(), str() if step in node.entries:
                node = node.entries[step].value
            case SequenceNode(), int() if step < len(node.items):
                node = node.items[step]
            case _:
                return None
    return node


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredKey:
    """A field that is a key, and where it is in a file."""

    field: dataclasses.Field[Any]
    type: Any
    key: Key
    path: tuple[str, ...]

    @property
    def default(self) -> Any:
        """Default of the field; MISSING if it has none."""
        made = self.field.default_factory
        return self.field.default if made is dataclasses.MISSING else made()


@cache
def list_keys(kind: Any) -> tuple[DeclaredKey, ...]:
    """The keys of a value, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in dataclasses.fields(kind):
        marks = getattr(hints[field.name], "__metadata__", ())
        key = next((mark for mark in marks if isinstance(mark, Key)), Key())
        if key is not NOT_A_KEY:
            path = tuple((key.path or field.name).split("."))
            found.append(DeclaredKey(field, hints[field.name], key, path))
    return tuple(found)


def overlay(base: V, given: V, report: ProblemReport, path: Path) -> V:
    """The base, with the keys that the file has at this position."""
    keys, kind = report.keys_at(path), cast(Any, type(base))
    names = [one.field.name for one in list_keys(kind) if one.path[0] in keys]
    return dataclasses.replace(base, **{name: getattr(given, name) for name in names})  # type: ignore[type-var]


@cache
def derive_model(kind: Any) -> type[BaseModel]:
    """The pydantic model of a value's keys, which also gives the JSON schema."""
    places: dict[str, list[DeclaredKey]] = {}
    for one in list_keys(kind):
        places.setdefault(one.path[0], []).append(one)
    members = {
        name: _declare(keys[0]) if len(keys[0].path) == 1 else _declare_group(name, keys)
        for name, keys in places.items()
    }
    # a form is the value that it becomes, as far as editors show it
    shown = kind.__base__ if kind.__name__.endswith("Form") else kind
    return _create(shown.__name__, shown.__doc__, members)


def _create(name: str, doc: str | None, members: dict[str, Any]) -> type[BaseModel]:
    with warnings.catch_warnings():
        # a key may be called "schema", as an old method of pydantic's is
        warnings.filterwarnings("ignore", message='Field name "schema"', category=UserWarning)
        model: type[BaseModel] = create_model(name, __base__=_Mapping, __doc__=doc, **members)
    return model


def _declare(one: DeclaredKey) -> tuple[Any, Any]:
    """Type and default of a key; empty lists and whole sections are defaults that editors need not show."""
    written, default = _translate(one.type), one.default
    about: dict[str, Any] = {"description": one.key.help or None}
    if one.key.default:
        about["json_schema_extra"] = {"default": one.key.default}
    if one.key.needed is False:
        return written | None, Field(default=None, **about)
    if one.key.needed or default is dataclasses.MISSING:
        return written, Field(**about)
    if default == () or dataclasses.is_dataclass(default):
        return written, Field(default_factory=lambda: default, **about)
    return written, Field(default=default, **about)


def _declare_group(name: str, keys: list[DeclaredKey]) -> tuple[Any, Any]:
    model = _create(name.title(), _GROUPS[name], {one.path[1]: _declare(one) for one in keys})
    if any(one.default is dataclasses.MISSING for one in keys):
        return model, Field()
    if any(one.key.needed for one in keys):
        return model | None, None
    return model, Field(default_factory=model)


def _translate(hint: Any) -> Any:
    """An annotation as pydantic needs it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        marks = [made for mark in hint.__metadata__ for made in _translate_mark(mark)]
        words = next((mark.words for mark in hint.__metadata__ if isinstance(mark, OneOf)), None)
        inner = _translate(args[0]) if words is None else Literal[words]
        return Annotated[(inner, *marks)] if marks else inner
    if origin in (Union, types.UnionType):
        return reduce(or_, (_translate(arg) for arg in args))
    if origin is tuple:
        return types.GenericAlias(list, (_translate(args[0]),))
    if origin is Mapping:
        return types.GenericAlias(dict, (_translate(args[0]), _translate(args[1])))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Annotated[Literal[tuple(word.value for word in hint)], AfterValidator(hint)]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return Annotated[derive_model(hint), AfterValidator(partial(_build, hint))]
    return hint


def _translate_mark(mark: Any) -> tuple[Any, ...]:
    match mark:
        case Value():
            return BeforeValidator(mark.parse), WithJsonSchema(dict(mark.schema))
        case AtLeast():
            return (Field(min_length=mark.entries),)
        case Key() | OneOf():
            return ()
        case _:
            return (mark,)


def _build(kind: Any, model: BaseModel) -> Any:
    """The value of a valid model; what is not a key and has no default is empty until the loader knows it."""
    fields = dataclasses.fields(kind)
    given: dict[str, Any] = {
        field.name: "" for field in fields if field.default is field.default_factory is dataclasses.MISSING
    }
    for one in list_keys(kind):
        found: Any = model
        for step in one.path:
            found = getattr(found, step, None)
        if found is not None:
            given[one.field.name] = tuple(found) if isinstance(found, list) else found
    return kind(**given)


def _to_data(node: Node) -> Any:
    """A tree as input for pydantic: dicts, lists, text, None and :class:`PlainScalar`."""
    if isinstance(node, ScalarNode):
        if node.kind == "null":
            return None
        if node.kind == "env":
            return EnvText(node.value)
        return node.value if node.kind == "str" else PlainScalar(node.kind, node.value)
    if isinstance(node, MappingNode):
        return {key: _to_data(entry.value) for key, entry in node.entries.items()}
    return [_to_data(item) for item in node.items]
