"""How a plan says that its correction reaches readers, where that is not the plain replacement. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["publish_words"]


def publish_words(publish: Mapping[str, Any]) -> list[str]:
    """The mode in words; nothing for a replacement of partitions, which the line before has said."""
    return [*_mode(publish), *_beside(publish)]


def _mode(publish: Mapping[str, Any]) -> list[str]:
    match publish.get("mode", "replace_partitions"):
        case "append":
            return ["append: new rows in empty partitions; a row that is there by then is a conflict"]
        case "merge":
            return ["merge by key: keys that the transform does not give keep their rows", *_merge(publish)]
        case "version":
            shown = f"; {publish['view']} shows what is accepted" if publish.get("view") else ""
            return [f"version: rows stand side by side in {publish.get('versions')}, the target is not touched{shown}"]
        case "swap_view":
            return [
                f"swap view: {publish.get('view')} shows the new partitions instead of the target's",
                f"rows stand in {publish.get('versions')}, the target is not touched",
            ]
        case "corrections":
            return ["corrections alone: the target is not touched"]
        case _:
            return []


def _beside(publish: Mapping[str, Any]) -> list[str]:
    told = [f"old and new values by key in {publish['corrections']}"] if publish.get("corrections") else []
    return told + [f"first: {statement}" for statement in publish.get("creates", ())]


def _merge(publish: Mapping[str, Any]) -> list[str]:
    told = []
    if version := publish.get("key_version"):
        told.append(f"a row with an older {version} changes nothing")
    if delete := publish.get("delete"):
        told.append(f"takes keys out where {delete}")
    return told
