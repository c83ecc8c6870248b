"""What a change of a catalog is, told by its content: the guard, an append of an attempt, a publication, a fence …

A REST request says it in JSON. A SQL catalog is told only where the new metadata is; the same is read off the two
metadata files. Nothing here counts commits, so a try more or less changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Change"]

_NAMED = re.compile(r".*/namespaces/[^/]+/(tables|views)/([^/?]+)(?:\?.*)?$")
_PLACES = {"tables": "create", "register": "register", "views": "create view"}
# a name of a ref → what a commit that only sets such refs is for
_REFS = (
    (r"errata_.*_pub", "fence"),
    (r"errata_.*_(base|in\d*)", "pin"),
    (r"errata_.*-[pr]\d+-[0-9a-f]+_(rows|rest)\d+.*", "rows branch"),
    (r"errata_.*_c\d+_[0-9a-f]+", "candidate branch"),
    (r"errata_.*_(dark|dark_before)", "dark tag"),
    (r"errata_[^_]+", "run branch"),
)


@dataclass(frozen=True)
class Change:
    """One change of a catalog."""

    table: str
    verb: str = "commit"  # or create, register, drop; create view, replace view, drop view
    summaries: tuple[Mapping[str, str], ...] = ()
    sets: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()
    forgets: bool = False
    """Snapshots are taken out of the metadata."""

    @classmethod
    def of_request(cls, method: str, path: str, body: bytes) -> Change | None:
        """The change that a REST request asks for; None when it asks for none."""
        found = _NAMED.match(path)
        kind, name = found.groups() if found else ("", "")
        if method == "DELETE" and found:
            return cls(name, "drop view" if kind == "views" else "drop")
        if method != "POST":
            return None
        if not found:
            verb = _PLACES.get(path.rpartition("/")[2])
            return cls(str(json.loads(body).get("name", "")), verb) if verb else None
        if kind == "views":
            return cls(name, "replace view")
        updates = json.loads(body)["updates"]
        return cls(
            name,
            "commit",
            tuple(u["snapshot"].get("summary", {}) for u in updates if u["action"] == "add-snapshot"),
            frozenset(u["ref-name"] for u in updates if u["action"] == "set-snapshot-ref"),
            frozenset(u["ref-name"] for u in updates if u["action"] == "remove-snapshot-ref"),
            any(u["action"] == "remove-snapshots" for u in updates),
        )

    @classmethod
    def of_metadata(cls, table: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
        """The change between two versions of a table's or view's metadata; the old one is empty for a new name."""
        if "view-uuid" in new:
            return cls(table, "replace view" if old else "create view")
        if not old:  # a catalog is told no more than that; of ours, only shadows are registered
            return cls(table, "register" if "shadow" in table else "create")
        before, after = ({s["snapshot-id"]: s for s in one.get("snapshots", ())} for one in (old, new))
        had, has = old.get("refs", {}), new.get("refs", {})
        return cls(
            table,
            "commit",
            tuple(after[one].get("summary", {}) for one in after if one not in before),
            frozenset(name for name in has if had.get(name) != has[name]),
            frozenset(had) - frozenset(has),
            bool(set(before) - set(after)),
        )

    @property
    def kind(self) -> str:
        """What it is for, in a word or two; of another table than the target with that table's part in front."""
        return f"{self._part()}{self._purpose()}"

    def _part(self) -> str:
        if self.table == "sales":
            return ""
        return next((f"{part} " for part in ("shadow", "quarantine", "erased") if part in self.table), "side ")

    def _purpose(self) -> str:
        if self.verb != "commit":
            return self.verb
        told = {key: value for summary in self.summaries for key, value in summary.items()}
        if "errata.publication" in told:
            return told.get("errata.kind", "publish")
        for name, purpose in (("attempt", "staging"), ("candidate", "candidate"), ("undo", "undo")):
            if f"errata.{name}" in told:
                return purpose
        if "errata.branch" in told:
            return _purpose_of({told["errata.branch"]})
        if self.summaries:
            return self._snapshot(told)
        if self.sets:
            return _purpose_of(self.sets)
        if self.removes:
            return "drop refs"
        return "forget" if self.forgets else "other"

    def _snapshot(self, told: Mapping[str, str]) -> str:
        """A new snapshot that does not say whose it is."""
        if "errata_guard" in self.sets:
            return "guard"
        if any(re.fullmatch(r"errata_.*_(rows|rest)\d+.*", ref) for ref in self.sets):
            return "rows"
        return "first snapshot" if "main" in self.sets and "added-data-files" not in told else "rows"


def _purpose_of(refs: Collection[str]) -> str:
    return next((what for name, what in _REFS if any(re.fullmatch(name, ref) for ref in refs)), "tag")
