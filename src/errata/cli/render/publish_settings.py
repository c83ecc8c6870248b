"""Describe how a plan reaches readers, if it is not the plain replacement of partitions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.cli.render.waves import describe_waves
from errata.text.numbers import format_duration


def describe_action(deed: str, table: str, publish: Mapping[str, Any]) -> str:
    """What publish, rollback or cancel is about to do to which table."""
    untouched = f"{table} is not touched"
    told = {
        ("publish", "append"): f"publish adds to {table}",
        ("rollback", "append"): f"rollback removes rows from {table}",
        ("publish", "merge"): f"publish merges into {table}",
        ("publish", "swap_view"): f"publish lets {publish.get('view')} show the new partitions; {untouched}",
        ("rollback", "swap_view"): f"rollback lets {publish.get('view')} show what it showed before; {untouched}",
        ("publish", "version"): f"publish adds a version to {publish.get('versions')}; {untouched}",
        ("rollback", "version"): f"rollback accepts the earlier version in {publish.get('versions')}; {untouched}",
        ("publish", "corrections"): f"publish records what changed in {publish.get('corrections')}; {untouched}",
        ("rollback", "corrections"): f"rollback reverses the rows in {publish.get('corrections')}; {untouched}",
    }
    plain = {"publish": "replaces in", "rollback": "restores in", "cancel": "ends the run on"}
    return told.get((deed, str(publish.get("mode")))) or f"{deed} {plain[deed]} {table}"


def describe_publish(publish: Mapping[str, Any]) -> list[str]:
    """The mode in words; nothing for a replacement of partitions, which the line before already states."""
    waves = describe_waves(publish["waves"]) if publish.get("waves") else []
    return [*_describe_mode(publish), *waves, *_describe_side_tables(publish)]


def describe_live_writes(publish: Mapping[str, Any]) -> list[str]:
    """Effect of a live write in scope on the run."""
    match publish.get("on_live_write"):
        case "freeze":
            freeze = publish["freeze"]
            idle, most = format_duration(freeze["idle"]), format_duration(freeze["at_most"])
            told = f"for {idle} after the last command of the run, {most} at most"
            return ["held off from the first run on: live jobs that ask wait", told, "one that does not is a conflict"]
        case "live_wins":
            return ["win: a partition they write meanwhile is pinned and computed again, and released again"]
        case _:
            return ["a write into these partitions is a conflict at publish"]


def _describe_mode(publish: Mapping[str, Any]) -> list[str]:
    match publish.get("mode", "replace_partitions"):
        case "append":
            return ["append: new rows in empty partitions; a row that is there by then is a conflict"]
        case "merge":
            return ["merge by key: keys that the transform does not return keep their rows", *_describe_merge(publish)]
        case "version":
            shown = f"; {publish['view']} shows what is accepted" if publish.get("view") else ""
            return [
                f"version: rows are kept side by side in {publish.get('versions')}, the target is not touched{shown}"
            ]
        case "swap_view":
            return [
                f"swap view: {publish.get('view')} shows the new partitions instead of the target's",
                f"rows are kept in {publish.get('versions')}, the target is not touched",
            ]
        case "corrections":
            return ["corrections alone: the target is not touched"]
        case _:
            return []


def _describe_side_tables(publish: Mapping[str, Any]) -> list[str]:
    told = [f"old and new values by key in {publish['corrections']}"] if publish.get("corrections") else []
    if topic := publish.get("corrections_topic"):
        told.append(f"sends them to {topic} as well")
    return told + [f"first: {statement}" for statement in publish.get("creates", ())]


def _describe_merge(publish: Mapping[str, Any]) -> list[str]:
    told = []
    if version := publish.get("key_version"):
        told.append(f"a row with an older {version} changes nothing")
    if delete := publish.get("delete"):
        told.append(f"takes keys out where {delete}")
    return told
