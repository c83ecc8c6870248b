"""Which stale partitions are quiet enough to act on.

A file that arrives late seldom comes alone. A partition is taken when what it reads has not changed for
``late.settle``, or when it has been stale for ``late.latest``, because some inputs are never quiet. Since when a
partition is stale is what earlier looks recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from errata.model.audit import Actor
from errata.model.duration import to_seconds
from errata.model.graph.read_rule import rule_of_input
from errata.model.product import Late, Product
from errata.staleness.claims import to_ms
from errata.staleness.judgement import Judgement
from errata.staleness.products import JudgedProduct
from errata.workspace import Workspace

NOTICED = "late.noticed"
"""Audit action with the partitions that are stale at a look, if they are others than at the look before."""
_COMMITS = 1000


@dataclass(frozen=True, slots=True)
class Settled:
    """Stale partitions, oldest first: those to act on, and those whose inputs are not quiet yet."""

    ready: tuple[str, ...]
    settling: tuple[str, ...]


def split_settled(
    names: Sequence[str], late: Late, changed_ms: Mapping[str, int], since_ms: Mapping[str, int], now_ms: int
) -> Settled:
    """Split stale partitions by whether their inputs are quiet. Pure.

    ``changed_ms`` has the newest change of what each partition reads, where it is known; otherwise the time counts at
    which it was first seen as stale.
    """
    settle, latest = (1000 * to_seconds(text) for text in (late.settle, late.latest))
    ready = [
        name
        for name in names
        if now_ms - changed_ms.get(name, since_ms.get(name, now_ms)) >= settle
        or now_ms - since_ms.get(name, now_ms) >= latest
    ]
    return Settled(tuple(ready), tuple(name for name in names if name not in set(ready)))


def notice_stale(workspace: Workspace, actor: Actor, product: str, names: Sequence[str]) -> dict[str, int]:
    """Record which partitions are stale, if that is news; returns since when each of them has been, in ms."""
    workspace.ledger.create()
    entries = [
        entry
        for entry in workspace.ledger.audit.readable_entries(actions=(NOTICED,))
        if entry.body["product"] == product
    ]
    if not entries or set(entries[-1].body["partitions"]) != set(names):
        if not entries and not names:
            return {}
        told = {"product": product, "partitions": list(names)}
        entries.append(workspace.ledger.audit.note(None, actor, NOTICED, told))
    since: dict[str, int] = {}
    open_ = set(names)
    for entry in reversed(entries):
        open_ &= set(entry.body["partitions"])
        since |= dict.fromkeys(open_, to_ms(entry.at))
    return since


def read_change_times(workspace: Workspace, found: JudgedProduct) -> dict[str, int]:
    """The newest change of what each stale partition reads, in ms; 0 if its inputs did not change at all."""
    by_input: dict[str, Mapping[str, int]] = {}
    stale = [one for one in found.judged if one.reasons]
    for source in found.product.inputs:
        names = {
            name
            for one in stale
            for reason in one.reasons
            if reason.input == source.name and reason.parent is None
            for name in reason.partitions
        }
        if names:
            by_input[source.name] = _read_times(workspace, found, source.name, sorted(names))
    times: dict[str, int] = {}
    for one in stale:
        known = _list_times(one, by_input)
        if None not in known:
            times[one.partition] = max((at for at in known if at is not None), default=0)
    return times


def _list_times(one: Judgement, by_input: Mapping[str, Mapping[str, int]]) -> list[int | None]:
    return [
        by_input.get(reason.input or "", {}).get(name)
        for reason in one.reasons
        if reason.input is not None and reason.parent is None
        for name in reason.partitions or ("",)
    ]


def _read_times(workspace: Workspace, found: JudgedProduct, name: str, partitions: Sequence[str]) -> dict[str, int]:
    product: Product = found.product
    source = next(one for one in product.inputs if one.name == name)
    if source.table is None or source.partition is None or source.own:
        state = found.read.get(name)
        files = (state.files if state else None) or {}
        return {
            one: max(int(file.version.partition(":")[2]) // 10**6 for file in files[one])
            for one in partitions
            if files.get(one) and all(file.version.startswith("mtime:") for file in files[one])
        }
    grain = rule_of_input(source, product.target.grain).input_grain
    history = workspace.engines.history.commits(source.table, source.partition, grain, partitions, most=_COMMITS)
    times: dict[str, int] = {}
    for commit in history.commits:  # newest first
        for one in partitions:
            if commit.touches_everything or one in commit.touched:
                times.setdefault(one, commit.at_ms)
    return times


def to_now_ms(now: datetime) -> int:
    """A moment in milliseconds since 1970."""
    return int(now.timestamp() * 1000)
