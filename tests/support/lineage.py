"""Lineage events as a collector would look at them: against the JSON schemas of OpenLineage, run by run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

__all__ = ["identify", "list_endings", "read_events", "require_valid"]

_SCHEMAS = Path(__file__).parent / "openlineage"
_ENDS = ("COMPLETE", "FAIL", "ABORT")


def read_events(file: Path) -> list[dict[str, Any]]:
    """The events of a file, each a line."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def require_valid(events: Iterable[dict[str, Any]]) -> None:
    """Every event fits OpenLineage's schema, and every facet the schema that it names."""
    for event in events:
        _require(event, event["schemaURL"])
        for facet in _iterate_facets(event):
            _require(facet, facet["_schemaURL"])


def identify(event: dict[str, Any]) -> tuple[str, str, str]:
    """What makes an event the same event."""
    return event["run"]["runId"], event["eventType"], event["eventTime"]


def list_endings(events: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Kinds of the events of each run, without repeated ones; a run has one START, before one end."""
    kinds: dict[str, list[str]] = {}
    for event in {identify(event): event for event in events}.values():
        kinds.setdefault(event["run"]["runId"], []).append(event["eventType"])
    for run, found in kinds.items():
        assert found[0] == "START", (run, found)
        assert found.count("START") == 1, (run, found)
        assert sum(kind in _ENDS for kind in found) <= 1, (run, found)
    return kinds


def _iterate_facets(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from event["run"].get("facets", {}).values()
    yield from event["job"].get("facets", {}).values()
    for dataset in (*event["inputs"], *event["outputs"]):
        for name in ("facets", "inputFacets", "outputFacets"):
            yield from dataset.get(name, {}).values()


def _require(document: dict[str, Any], schema: str) -> None:
    _build_validator(schema).validate(document)


@cache
def _build_validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": schema}, registry=_load(), format_checker=FormatChecker())


@cache
def _load() -> Registry[Any]:
    documents = [json.loads(file.read_text("utf-8")) for file in sorted(_SCHEMAS.glob("*.json"))]
    return Registry().with_resources([(one["$id"], Resource.from_contents(one)) for one in documents])
