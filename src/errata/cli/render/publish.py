"""Render publications, rollbacks and their confirmations as text. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from errata.cli.render.approval import render_break_glass, render_mode, render_released
from errata.cli.render.calendar import to_state_word
from errata.cli.render.consumers.copies import render_copies
from errata.cli.render.hazard import render_hazard
from errata.cli.render.layout import flow, render_warnings, wrap
from errata.cli.render.publish_settings import describe_action
from errata.cli.render.throttle import format_partitions
from errata.cli.render.waves import render_upcoming
from errata.model.partition import Grain, format_partition_list
from errata.text.numbers import format_duration, format_moment, plural

if TYPE_CHECKING:
    from errata.views import PlanView, PublishView, RollbackView, StatusView


def render_publish(view: PublishView, width: int) -> list[str]:
    """What was published, what was left alone, and how to undo it."""
    lines = _render_landed(view, "published", "" if view.already else format_duration(view.seconds), width)
    files = [f"{plural(view.removed_files, 'file')} out", f"{plural(view.added_files, 'file')} in"]
    lines += flow([view.publication_id, *([] if view.already else files)], width, "  ")
    if view.live_commits:
        lines.append(f"  live writes since planning: {view.live_commits:,}, all kept")
    if view.compacted:
        told = f"rewritten since planning with the same rows: {format_partitions(view.grain, view.compacted)}"
        lines += wrap(told, width, "  ")
    lines += [f"  {line}" for line in render_copies(view.copies, view.grain, width - 2)]
    lines += render_warnings(view.warnings, width, "  ! ", shown=[copy.error for copy in view.copies])
    for line in view.owed:
        lines += wrap(line, width, "  still owed: ")
    lines += [f"  {line}" for line in render_released(None, view.release, width - 2)]
    lines += render_break_glass(view.break_glass, width)
    lines += [f"  {line}" for line in render_mode(view.single_user)]
    if view.undo_until:
        lines.append(f"  undo until {format_moment(view.undo_until)[:10]}: {_rollback_command(view.run_id)}")
    return lines + [f"  {line}" for line in render_upcoming(view.waves, view.turn, view.grain, width - 2)]


def _render_landed(view: PublishView | RollbackView, word: str, took: str, width: int) -> list[str]:
    """What landed, where, and what it cost."""
    where = f" of {view.landed_on}" if view.landed_on else ""
    pieces = [f"{'already ' if view.already else ''}{word} {view.run_id}", plural(len(view.partitions), "partition")]
    written = f"{plural(view.data_files_written, 'data file')} written"
    lines = flow([*pieces, f"snapshot {view.snapshot_id}{where}", written, took], width)
    return lines + (wrap(format_partitions(view.grain, view.partitions), width, "  ") if view.partitions else [])


def _list_waves_left(status: StatusView) -> tuple[tuple[str, ...], ...]:
    """Partitions of the remaining waves, next first."""
    left = status.waves[status.turn.next - 1 :] if status.turn is not None and status.turn.next else ()
    return tuple(wave.partitions for wave in left if wave.state in ("validated", "part_published"))


def _rollback_command(run_id: str) -> str:
    return f'errata rollback {run_id} --reason "…"'


def render_rollback(view: RollbackView, width: int) -> list[str]:
    """What was restored."""
    lines = _render_landed(view, "rolled back", format_duration(view.seconds), width)
    # for a repeated rollback, later writes by others are not known here
    told = "nothing was changed now" if view.already else "readers see what these partitions held before"
    lines += flow([view.publication_id, told], width, "  ")
    for later, partitions in view.later.items():
        lines += wrap(f"{later} has published {format_partitions(view.grain, partitions)} since", width, "  ")
    lines += render_hazard(view.hazard, width) if view.hazard else []
    lines += [f"  {line}" for line in render_copies(view.copies, view.grain, width - 2)]
    lines += render_warnings(view.warnings, width, "  ! ", shown=[copy.error for copy in view.copies])
    lines += [f"  {line}" for line in render_mode(view.single_user)]
    if not view.later:
        scope = format_partition_list(Grain(view.grain), view.partitions)
        lines += ["  to correct them again:", f'  errata plan {view.product} --partitions {scope} --reason "…"']
    return lines


def render_confirmation(
    deed: str,
    plan: PlanView,
    status: StatusView,
    width: int,
    *,
    partitions: str | None = None,
    reason: str = "",
    wait: bool = False,
) -> list[str]:
    """What publish, rollback or cancel is about to do, shown before the question.

    ``wait``: all remaining waves, one after the other.
    """
    lines = flow([plan.run_id, f"state {(status.state or plan.state).replace('_', ' ')}"], width)
    lines += wrap(describe_action(deed, plan.table, plan.publish), width)
    waves = _list_waves_left(status)[: None if wait else 1] if deed == "publish" else ()
    names = tuple(name for wave in waves for name in wave) or plan.partitions
    scope = partitions or format_partitions(plan.grain, names)
    steps = f" in {len(waves)} waves" if len(waves) > 1 else ""
    number = "" if partitions else f"{plural(len(names), 'partition')}{steps}: "
    lines += wrap(number + scope, width, "  ")
    counted = Counter(to_state_word(part.state) for part in status.partitions)
    lines += flow((f"{number} {word}" for word, number in counted.items()), width, "  now ")
    if deed == "publish":
        lines += [f"  {line}" for line in render_upcoming(status.waves, status.turn, "", width - 2)]
    lines += wrap(reason or plan.reason, width, "  reason ")
    for one in status.accepted if deed == "publish" else ():
        lines += wrap(one["why"], width, f"  warning {one['check']} accepted by {one['person']}: ")
    if deed == "publish":
        lines += [f"  {line}" for line in render_released(plan.release_digest, plan.release, width - 2)]
    lines += render_break_glass(plan.break_glass, width)
    lines += [f"  {line}" for line in render_mode(plan.single_user)]
    if deed == "publish" and plan.consumers:
        lines += wrap(", ".join(plan.consumers), width, "  readers ")
    if deed == "cancel":
        lines.append("  main stays as it is; staged output is removed by errata cleanup")
    return lines
