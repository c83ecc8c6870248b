"""Derive the manifest of a member from its campaign and from what was found when it started. Pure.

:func:`derive_manifest` connects what was approved with what a member runs, so it is one function of JSON data that the
ledger, ``errata publish`` and the verifier of evidence (which has a copy) all compute.
What was found may fill in only the named fields. :func:`find_drift` says where it is not what was approved:

- the scope of the member holds the files that it held when the campaign was sealed, up to compaction;
- a partition that a member reads is exactly what a run of this campaign published, or what it was when the campaign was
  sealed, up to compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = "errata.derived/1"
TARGET_FIELDS = ("base_snapshot_id", "expected_part", "fingerprints", "total_partitions")
"""What a member's manifest takes from the target as it is when the member starts."""
INPUT_FIELDS = (
    "fingerprints", "rows", "bytes", "file_count", "snapshot_id", "files_part", "era_of", "schemas", "counts",
)  # fmt: skip
"""What a member's manifest takes from each input as it is when the member starts."""
FIXED_FIELDS = {
    "table_uuid": "the table was dropped and created again",
    "schema_id": "its schema changed",
    "spec_id": "its partitioning changed",
}
"""Of the target: what may not have changed, and what it means if it did."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference between what was approved and what is there."""

    what: str  # the scope, or the input
    table: str
    partitions: tuple[str, ...]
    why: str


def find_member(campaign: Json, product: str) -> Json:
    """A member in the JSON data of a campaign; there must be one."""
    found: Json = next(one for one in campaign["members"] if one["product"] == product)
    return found


def derive_manifest(campaign: Json, digest: str, product: str, found: Json) -> dict[str, Any]:
    """The manifest of a member's run, as JSON data; ``digest`` is the campaign's."""
    sealed = find_member(campaign, product)["manifest"]
    return {
        **sealed,
        "campaign": digest,
        "as_of": found["as_of"],
        "target": {**sealed["target"], **{name: found["target"][name] for name in TARGET_FIELDS}},
        "inputs": [
            {**pin, **{name: found["inputs"][pin["name"]][name] for name in INPUT_FIELDS}} for pin in sealed["inputs"]
        ],
    }


def find_drift(campaign: Json, product: str, found: Json, intents: Mapping[str, Json]) -> tuple[Drift, ...]:
    """Where a member would read or replace something that nobody approved; ``intents`` are by digest."""
    member = find_member(campaign, product)
    return (
        *_find_target_drift(member, found),
        *_find_input_drift(member, found),
        *_find_read_drift(member, found, intents),
    )


def _find_target_drift(member: Json, found: Json) -> Iterator[Drift]:
    target, now = member["manifest"]["target"], found["target"]
    for name, why in FIXED_FIELDS.items():
        if target[name] != now[name]:
            yield Drift("the scope", target["table"], (), why)
    changed = _find_changed(target["fingerprints"], now["fingerprints"], _list_compacted(found, target["table"]))
    if changed:
        yield Drift("the scope", target["table"], changed, "was written since the campaign was planned")


def _find_input_drift(member: Json, found: Json) -> Iterator[Drift]:
    """Inputs that no member writes."""
    apart = {read["input"] for read in member["reads"]}
    for pin in member["manifest"]["inputs"]:
        name, now = pin["name"], found["inputs"][pin["name"]]
        what = f"input {name}"
        if pin.get("table_uuid") != now["table_uuid"]:
            yield Drift(what, pin["location"], (), FIXED_FIELDS["table_uuid"])
        if name in apart or pin.get("own") or name in member["live_inputs"]:
            continue
        if changed := _find_changed(pin["fingerprints"], now["fingerprints"], _list_compacted(found, pin["location"])):
            yield Drift(what, pin["location"], changed, "changed since the campaign was planned")


def _find_read_drift(member: Json, found: Json, intents: Mapping[str, Json]) -> Iterator[Drift]:
    """Inputs that other members write, and the member's own earlier output."""
    for read in member["reads"]:
        name, table = read["input"], read["table"]
        what, now, published = f"input {name}", found["reads"][name], _list_published(read, found)
        compacted = _list_compacted(found, table)
        if now["snapshot_id"] != found["inputs"][name]["snapshot_id"]:
            yield Drift(what, table, (), "was written while it was looked at")
        if name not in member["live_inputs"]:
            changed = _find_changed(read["fingerprints"], now["fingerprints"], compacted)
            if changed:
                yield Drift(what, table, changed, "changed since the campaign was planned")
        unpublished = tuple(one for one in read["published"] if one not in published)
        if unpublished:
            yield Drift(what, table, unpublished, f"is not what the run of {read['from_run']} published")
        moved = tuple(
            one
            for one, publication in published.items()
            if one not in compacted and not _is_published(now["files"].get(one), intents[publication["detail"]], one)
        )
        if moved:
            yield Drift(what, table, moved, f"was written after {read['from_run']} was published")


def _list_published(read: Json, found: Json) -> dict[str, Json]:
    """Partitions of a read that the member's run wrote, each with its publication."""
    known = (found["publications"].get(read["from_run"]) or {}).get("partitions", {})
    return {name: known[name] for name in read["published"] if name in known}


def _is_published(files: Iterable[Iterable[Any]] | None, intent: Json, partition: str) -> bool:
    """Whether a partition holds exactly the files that a publication put there."""
    return files is not None and sorted(map(list, files)) == sorted(map(list, intent["add"].get(partition, ())))


def _find_changed(sealed: Mapping[str, str], now: Mapping[str, str], compacted: Iterable[str]) -> tuple[str, ...]:
    kept = set(compacted)
    return tuple(
        name for name in sorted({*sealed, *now}) if sealed.get(name) != now.get(name) and name not in kept
    )  # fmt: skip


def _list_compacted(found: Json, table: str) -> frozenset[str]:
    """Partitions whose files only compaction exchanged, by the commits that are named with them."""
    return frozenset(name for name, commits in found["compacted"].get(table, {}).items() if commits)
