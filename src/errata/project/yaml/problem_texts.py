"""Turn model validation errors into Errata's messages, at the line of the error. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from errata.project.problems import Path, ProblemReport, format_path

_DBT = {
    "arguments": "dbt's arguments are keys of the check itself",
    "column_name": "dbt's column_name is written column",
    "combination_of_columns": "dbt's combination_of_columns is written columns",
    "config": "dbt's config is part of the check itself: severity, and a threshold such as mustBeLessThan",
    "error_if": "dbt's error_if is a threshold such as mustBeLessThan, with severity: block",
    "field": "dbt's field is written references: {input: NAME, columns: [...]}",
    "inclusive": "minimum and maximum are valid values; for an open range write an expression",
    "max_value": "dbt's max_value is written maximum",
    "min_value": "dbt's min_value is written minimum",
    "quote": "values are read in the column's own type; leave it out",
    "to": "dbt's to is written references: {input: NAME, columns: [...]}",
    "values": "dbt's values is written validValues",
    "warn_if": "dbt's warn_if is a threshold such as mustBeLessThan, with severity: warn",
    "where": "a filter is part of the condition: write an expression",
}
"""Keys of dbt checks, and how to write them here."""

_SHAPES = {
    "model_type": "expected a mapping",
    "dict_type": "expected a mapping",
    "list_type": "expected a list",
    "none_required": "expected nothing",
}
_BRANCHES = ("<many>", "<one>", "<list>", "<mapping>")


def report_error(kind: type[BaseModel], error: Mapping[str, Any], report: ProblemReport) -> None:
    """Add one validation error to the report."""
    type_, path = error["type"], strip_branches(error["loc"])
    context = error.get("ctx", {})
    if type_ == "extra_forbidden":
        advice = _DBT.get(str(path[-1])) if path[0] == "checks" else None
        known = f"; {advice}" if advice else _suggest_keys(kind, path)
        report.at_key(path, f'unknown key "{path[-1]}"{_format_parent(path)}{known}')
    elif type_ == "missing":
        report.at_key(path, f'missing key "{path[-1]}"{_format_parent(path)}')
    elif path and path[-1] == "[key]":
        report.at_key(path[:-1], f'{format_path(path[:-1])}: {context["error"]}; found "{path[-2]}"')
    elif type_ == "literal_error":
        _report_choice(path, list_choices(error), report)
    elif type_ in ("too_short", "too_long"):
        _report_length(path, context, report)
    else:
        report.at(path, _SHAPES.get(type_) or str(context.get("error", error["msg"])))


def strip_branches(loc: Iterable[str | int]) -> Path:
    """Position of an error in the file, without the names of alternatives and of keys as such."""
    return tuple(step for step in loc if step not in _BRANCHES)


def list_choices(error: Mapping[str, Any]) -> list[str]:
    """The words that would have been right."""
    return re.findall(r"'([^']*)'", error["ctx"]["expected"])


def find_nearest_key(kind: type[BaseModel], path: Path) -> str | None:
    """The valid key that an unknown one most likely means."""
    return find_nearest(str(path[-1]), sorted(_list_keys(_json_schema(kind), path[:-1])))


def _format_parent(path: Path) -> str:
    return f" in {format_path(path[:-1])}" if path[:-1] else ""


def _suggest_keys(kind: type[BaseModel], path: Path) -> str:
    keys = sorted(_list_keys(_json_schema(kind), path[:-1]))
    close = find_nearest(str(path[-1]), keys)
    return f'; nearest valid key: "{close}"' if close else f"; valid keys: {', '.join(keys)}"


def _report_choice(path: Path, choices: list[str], report: ProblemReport) -> None:
    listed = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    report.at(path, f"expected {listed}{hint_nearest(report.text_at(path), choices)}")


def _report_length(path: Path, context: Mapping[str, Any], report: ProblemReport) -> None:
    least, most = context.get("min_length", 0), context.get("max_length", 0)
    wanted = f"at least {least}" if context.get("field_type") == "Dictionary" or least == 1 else f"{least or most}"
    report.at(path, f"expected {wanted} {'entry' if wanted.endswith(' 1') else 'entries'}", found=False)


def find_nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most likely meant, regardless of case, or None."""
    folded = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def hint_nearest(word: str, choices: Iterable[str]) -> str:
    """Words that name the choice most likely meant; empty if none is close."""
    close = find_nearest(word, choices)
    return f' (nearest: "{close}")' if close else ""


@cache
def _json_schema(kind: type[BaseModel]) -> dict[str, Any]:
    return kind.model_json_schema()


def _list_keys(schema: Mapping[str, Any], path: Path) -> set[str]:
    """Keys that a file may have at a position, looked up in the JSON schema."""
    branches = [schema]
    for step in path:
        branches = [
            inner
            for branch in _resolve_refs(schema, branches)
            for inner in (
                branch.get("properties", {}).get(step),
                branch.get("additionalProperties"),
                *branch.get("patternProperties", {}).values(),
                branch.get("items") if isinstance(step, int) else None,
            )
            if isinstance(inner, Mapping)
        ]
    return {key for branch in _resolve_refs(schema, branches) for key in branch.get("properties", {})}


def _resolve_refs(schema: Mapping[str, Any], branches: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for branch in branches:
        name = str(branch.get("$ref", "")).rpartition("/")[2]
        found.append(schema["$defs"][name] if name else branch)
        found.extend(_resolve_refs(schema, (*branch.get("anyOf", ()), *branch.get("oneOf", ()))))
    return found
