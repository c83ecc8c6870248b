"""What reads a table according to dbt: models, directly or through others, and exposures. Pure.

Built from the data of dbt's artifact ``manifest.json``, without dbt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

VERSION = 12
"""The version of the artifact's schema that is understood; dbt has written it since 1.8."""
_NOT_NODES = frozenset({"metadata", "disabled", "macros", "docs", "parent_map", "child_map", "group_map", "selectors"})
_EXPOSURE = "exposure"
_SHOWN = 3
_BUILT = ("model", "snapshot")
"""Kinds of nodes that dbt builds from what they read."""


@dataclass(frozen=True, slots=True)
class DbtNode:
    """A source, model, exposure or anything else that a project of dbt consists of."""

    unique_id: str
    kind: str
    name: str
    reads: tuple[str, ...]
    data: Mapping[str, Any]

    @property
    def relation(self) -> tuple[str, str, str]:
        """Database, schema and name of the table, in small letters; empty if the node is none."""
        name = self.data.get("identifier") or self.data.get("alias") or ""
        return tuple(str(one or "").casefold() for one in (self.data.get("database"), self.data.get("schema"), name))  # type: ignore[return-value]

    @property
    def event_time(self) -> str | None:
        """The column by which dbt cuts it into intervals."""
        found = (self.data.get("config") or {}).get("event_time")
        return str(found) if found else None


@dataclass(frozen=True, slots=True)
class DbtReader:
    """A model or an exposure that reads a table, with those through which it does."""

    node: DbtNode
    reads: tuple[str, ...]  # tables of the project, and unique ids of other readers


@dataclass(frozen=True, slots=True)
class DbtGraph:
    """The nodes of a project of dbt."""

    nodes: Mapping[str, DbtNode]

    def find_tables(self, table: str) -> tuple[DbtNode, ...]:
        """Nodes that are this table: those in a database of the catalog's name, or else of the same schema and name.

        The name of a database in dbt is often not that of the catalog in errata.yaml.
        """
        catalog, _, rest = table.casefold().partition(".")
        schema, _, name = rest.rpartition(".")
        alike = [node for node in self.nodes.values() if node.relation[1:] == (schema, name)]
        return tuple([node for node in alike if node.relation[0] in ("", catalog)] or alike)

    def list_readers(self, tables: Sequence[str]) -> tuple[DbtReader, ...]:
        """Models and exposures that read one of these tables, directly or through others, each after what it reads."""
        named = {node.unique_id: table for table in tables for node in self.find_tables(table)}
        readers: dict[str, list[DbtNode]] = {}
        for node in self.nodes.values():
            for read in node.reads:
                readers.setdefault(read, []).append(node)
        reached: set[str] = set()
        waiting = sorted(named)
        while waiting:
            for node in readers.get(waiting.pop(), ()):
                if node.unique_id not in reached:
                    reached.add(node.unique_id)
                    waiting.append(node.unique_id)
        shown = {key for key in reached if self.nodes[key].kind in (*_BUILT, _EXPOSURE)}
        # in the order in which dbt could build them; sorted first, so that it is always the same one
        order = TopologicalSorter({key: sorted(reached.intersection(self.nodes[key].reads)) for key in sorted(reached)})
        return tuple(
            DbtReader(self.nodes[key], tuple(sorted(set(self._find_shown(key, named, shown)))))
            for key in order.static_order()
            if key in shown
        )

    def _find_shown(self, key: str, named: Mapping[str, str], shown: set[str]) -> Iterator[str]:
        """What a node reads, past nodes that are not shown, such as metrics."""
        for read in self.nodes[key].reads:
            if read in named:
                yield named[read]
            elif read in shown:
                yield read
            elif read in self.nodes and self.nodes[read].kind not in _BUILT:
                yield from self._find_shown(read, named, shown)


@dataclass(frozen=True, slots=True)
class DbtManifest:
    """The graph of a project of dbt, and the file that it is from."""

    file: str
    dbt_version: str
    graph: DbtGraph

    def describe(self) -> str:
        """File and versions, for messages."""
        return f"{self.file} (dbt {self.dbt_version}, schema v{VERSION})"


def is_exposure(node: DbtNode) -> bool:
    """Whether a node is an exposure: a dashboard, a notebook or whatever else uses models."""
    return node.kind == _EXPOSURE


def build_dbt_graph(data: Mapping[str, Any]) -> DbtGraph:
    """The graph of a manifest; raises ``ValueError`` that names nodes which are read and missing."""
    nodes = {}
    for section, found in data.items():
        for key, node in found.items() if section not in _NOT_NODES and isinstance(found, dict) else ():
            if isinstance(node, dict) and "resource_type" in node:
                reads = tuple((node.get("depends_on") or {}).get("nodes") or ())
                nodes[key] = DbtNode(key, str(node["resource_type"]), str(node.get("name") or key), reads, node)
    missing = sorted({read for node in nodes.values() for read in node.reads if read not in nodes})
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ValueError(f"nodes read {', '.join(missing[:_SHOWN])}{more}, which it does not have")
    return DbtGraph(nodes)
