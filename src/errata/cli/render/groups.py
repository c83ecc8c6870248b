"""Render the publication groups of a run as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errata.cli.render.layout import flow, format_columns, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import format_duration, format_moment, plural

if TYPE_CHECKING:
    from errata.views import GroupsView, GroupView

_MOST = 12


_WORDS = {"part_published": "published in part", "rolled_back": "rolled back"}


def describe_groups(groups: Mapping[str, Any]) -> list[str]:
    """Summary of a plan's groups."""
    found = groups["groups"]
    size = plural(min(int(groups["size"]), max(map(len, found))), "partition")
    if len(found) == 1:
        return [f"all in one group of {size}"]
    return [f"in {len(found)} groups of {size}, {groups['order']} first, {groups['hold']} apart at least"]


def render_groups(view: GroupsView | None, grain: str, width: int) -> list[str]:
    """Every group and its state; a long list shows only the groups around the next one."""
    if view is None:
        return []
    lines = flow([plural(len(view.groups), "group"), f"{view.order} first", f"hold {view.hold}"], width)
    first = max(0, min((view.next or len(view.groups)) - _MOST // 2, len(view.groups) - _MOST))
    lines += [f"  … {first} before"] if first else []
    lines += format_columns(
        [_group_row(group, view, grain) for group in view.groups[first : first + _MOST]], width, right=(0,)
    )
    left = len(view.groups) - first - _MOST
    lines += [f"  … {left} after"] if left > 0 else []
    return [*lines, *render_upcoming(view, "", width)]


def _group_row(group: GroupView, view: GroupsView, grain: str) -> list[str]:
    word = "next" if group.n == view.next and group.state == "waiting" else _WORDS.get(group.state, group.state)
    when = f"{format_moment(group.published_at)} UTC" if group.published_at else ""
    return [str(group.n), word, when, format_partitions(grain, group.partitions)]


def render_upcoming(view: GroupsView | None, grain: str, width: int) -> list[str]:
    """When the next group may go, or what stops it; with a grain, also its partitions."""
    if view is None or view.next is None:
        return []
    group = view.groups[view.next - 1]
    which = f"group {view.next} of {len(view.groups)}" + (
        f": {format_partitions(grain, group.partitions)}" if grain else ""
    )
    if view.stopped:
        return wrap(f"{which} waits: {view.stopped}", width, "! ")
    if view.not_before is None:
        return wrap(f"{which} may go now", width)
    at = view.not_before[:19].replace("T", " ")
    return wrap(f"{which} may go at {at} UTC, in {format_duration(view.seconds_left)}", width)
