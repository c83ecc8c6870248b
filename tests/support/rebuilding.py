"""What rebuilding missing events should give, computed in Python by trying every pairing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from errata.model.product.reconstruction import Reconstruction

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
Event = Mapping[str, Any]


@dataclass
class _Best:
    key: tuple[int, int, str, str] | None = None


def find_unpaired(known: Sequence[tuple[int, str]], new: Sequence[tuple[int, str]], within: int) -> list[str]:
    """Ids of the new events without a partner, by trying every pairing of times and ids."""
    known, new = sorted(known), sorted(new)
    best = _Best()

    def search(n: int, used: frozenset[int], paired: frozenset[int], apart: int) -> None:
        if n == len(new):
            marks = ("".join("01"[i not in done] for i in range(len(side)))
                     for side, done in ((new, paired), (known, used)))  # fmt: skip
            key = (-len(paired), apart, *marks)
            best.key = key if best.key is None else min(best.key, key)  # type: ignore[type-var,assignment]
            return
        search(n + 1, used, paired, apart)
        for k, (at, _) in enumerate(known):
            if k not in used and abs(at - new[n][0]) <= within:
                search(n + 1, used | {k}, paired | {n}, apart + abs(at - new[n][0]))

    search(0, frozenset(), frozenset(), 0)
    assert best.key is not None
    return [name for (_, name), mark in zip(new, best.key[2], strict=True) if mark == "1"]


def rebuild_by_hand(
    recorded: Sequence[Event], sources: Mapping[str, Sequence[Event]], rules: Reconstruction
) -> list[tuple[str | None, ...]]:
    """Origin, rule and ``name`` of every event that should be there, one rule after the other, sorted."""
    known = [{**event, "origin": None, "rule": None, "seen": set()} for event in recorded]
    left = {name: list(rows) for name, rows in sources.items()}
    for rule in rules.rules:
        key = rule.identity or rule.key or (*rule.match.on, rules.time)  # type: ignore[union-attr]
        needed = {*key, rules.time, *(rule.match.on if rule.match else ())}
        mine = [row for row in left[rule.source] if all(row[name] is not None for name in needed)]
        left[rule.source] = [row for row in left[rule.source] if row not in mine]
        first: dict[tuple[Any, ...], Event] = {}
        for row in sorted(mine, key=lambda row: (row[rules.time], str(row["name"]))):
            first.setdefault(tuple(row[name] for name in key), row)
        if rule.identity:
            for values, row in first.items():
                same = [one for one in known if tuple(one[name] for name in rule.identity) == values]
                for one in same:
                    one["seen"].add(rule.source)
                if not same:
                    known.append({**row, "origin": rule.source, "rule": rule.name, "seen": {rule.source}})
            continue
        assert rule.match is not None
        added = []
        for values in {tuple(row[name] for name in rule.match.on) for row in first.values()}:
            there = [
                (_milliseconds(one[rules.time]), str(one["name"]))
                for one in known
                if tuple(one[name] for name in rule.match.on) == values and rule.source not in one["seen"]
            ]
            rows = [row for row in first.values() if tuple(row[name] for name in rule.match.on) == values]
            lone = find_unpaired(
                there, [(_milliseconds(row[rules.time]), str(row["name"])) for row in rows], rule.match.within * 1000
            )
            added += [row for row in rows if row["name"] in lone]
        known += [{**row, "origin": rule.source, "rule": rule.name, "seen": set()} for row in added]
    return sorted(((one["origin"], one["rule"], one["name"]) for one in known), key=str)


def _milliseconds(at: datetime) -> int:
    return round((at - START) / timedelta(milliseconds=1))
