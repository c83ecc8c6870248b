"""Render the waves of a run as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from errata.cli.render.layout import flow, format_columns, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import format_duration, format_moment, plural

if TYPE_CHECKING:
    from errata.views import WaveTurnView, WaveView

_MOST = 12

_WORDS = {
    "part_published": "published in part",
    "rolled_back": "rolled back",
    "needs_acceptance": "needs acceptance",
    "validated": "judged",
    "staged": "computed",
}
_RELEASE = {
    "each": "each released by a person",
    "first": "the first released by a person, later ones go alone while nothing is found",
    "none": "each goes if its gate finds nothing",
}


def describe_waves(waves: Mapping[str, Any]) -> list[str]:
    """Summary of a plan's waves."""
    found = waves["waves"]
    if len(found) == 1:
        return [f"all in one wave of {plural(len(found[0]), 'partition')}"]
    most = plural(max(map(len, found)), "partition")
    apart = "" if waves["pause"] == "0s" else f", {waves['pause']} apart at least"
    lines = [f"in {len(found)} waves of {most}, {waves['order']} first{apart}", _describe_release(waves)]
    if waves["with_last"]:
        lines.append(
            f"{', '.join(waves['with_last'])}: judged with the last wave; if it fails, the others stay published"
        )
    if waves["new_columns"]:
        lines.append(f"{', '.join(waves['new_columns'])}: NULL in the partitions of later waves until they go")
    return lines


def _describe_release(waves: Mapping[str, Any]) -> str:
    if not waves["within"]:
        return _RELEASE[waves["release"]]
    limits = ", ".join(f"{metric} {most}" for metric, most in waves["within"].items())
    return f"{_RELEASE[waves['release']]}, within {limits}"


def render_waves(waves: Sequence[WaveView], turn: WaveTurnView | None, grain: str, width: int) -> list[str]:
    """Every wave and its state; a long list shows only the waves around the next one."""
    if turn is None:
        return []
    pause = [] if turn.pause == "0s" else [f"pause {turn.pause}"]
    lines = flow([plural(len(waves), "wave"), f"{turn.order} first", *pause], width)
    first = max(0, min((turn.next or len(waves)) - _MOST // 2, len(waves) - _MOST))
    lines += [f"  … {first} before"] if first else []
    head = ["", "", "", "visible since", "after computing"]
    rows = [_wave_row(wave, grain) for wave in waves[first : first + _MOST]]
    lines += format_columns([head, *rows] if any(wave.visible_at for wave in waves) else rows, width, right=(0,))
    left = len(waves) - first - _MOST
    lines += [f"  … {left} after"] if left > 0 else []
    return [*lines, *render_upcoming(waves, turn, "", width)]


def _wave_row(wave: WaveView, grain: str) -> list[str]:
    word = _WORDS.get(wave.state, wave.state)
    since = f"{format_moment(wave.visible_at)} UTC" if wave.visible_at else ""
    taken = ""
    if wave.visible_at and wave.computed_at and wave.state == "published":
        found = datetime.fromisoformat(wave.visible_at) - datetime.fromisoformat(wave.computed_at)
        taken = format_duration(max(0, round(found.total_seconds())))
    if wave.seconds_to_compute is not None:
        since = f"computed in about {format_duration(wave.seconds_to_compute)}"
    return [str(wave.n), word, format_partitions(grain, wave.partitions), since, taken]


def render_upcoming(waves: Sequence[WaveView], turn: WaveTurnView | None, grain: str, width: int) -> list[str]:
    """When the next wave may go, or what stops it; with a grain, also its partitions."""
    if turn is None or turn.next is None:
        return []
    wave = waves[turn.next - 1]
    which = f"wave {turn.next} of {turn.of}" + (f": {format_partitions(grain, wave.partitions)}" if grain else "")
    if turn.stopped:
        return wrap(f"{which} waits: {turn.stopped}", width, "! ")
    if wave.state in ("rejected", "needs_acceptance"):
        return wrap(f"{which} waits: its gate found something; look at it first", width, "! ")
    if wave.state not in ("validated", "part_published"):
        return wrap(f"{which} is {_WORDS.get(wave.state, wave.state)}", width)
    if turn.not_before is None:
        return wrap(f"{which} may go now", width)
    at = turn.not_before[:19].replace("T", " ")
    return wrap(f"{which} may go at {at} UTC, in {format_duration(turn.seconds_left)}", width)
