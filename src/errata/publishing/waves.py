"""Waves: which wave is next, when it may be published, and what stops it.

The pause starts at the run's last publication that landed, on the ledger's clock. A rollback of anything the run
published stops the waves, as does ``errata pause``, until a person continues with ``errata resume``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from errata.approval.permissions import require_person, require_role
from errata.approval.release import audit_refusal
from errata.errors import StateRefused, UsageError
from errata.gate.wave_rules import list_last_rules
from errata.ledger import ChunkRecord, PublicationRecord, RunRecord, WaveRecord
from errata.model.audit import Actor
from errata.model.duration import to_seconds
from errata.model.manifest import Manifest
from errata.model.product import Role
from errata.model.product.throttle import Signal
from errata.model.run import FINAL, ChunkState, PublicationState, RunState
from errata.model.waves import (
    OUT,
    PAUSED,
    RESUME_ACTIONS,
    RESUMED,
    TAKEN_BACK,
    WAVE_ACTIONS,
    WaveState,
    build_pause_error,
    build_stopped_error,
    compute_pause_end,
    find_wave,
    list_waves,
    resolve_wave_order,
    wave_of_chunk,
)
from errata.publishing.selection import select_partitions
from errata.text.numbers import format_moment, plural
from errata.views import StateView, WaveTurnView, WaveView
from errata.worker.pipeline_health import HealthMonitor, Level, Reading
from errata.workspace import RunContext, Workspace

_IDLE = frozenset({RunState.PLANNED, RunState.APPROVED, RunState.DECLINED, RunState.CANCELLED, RunState.EXPIRED})
"""States of a run in which none of its waves is on its way."""


def find_next_wave(waves: Sequence[WaveRecord]) -> WaveRecord | None:
    """The first wave with something left to publish."""
    return next((wave for wave in waves if wave.state not in OUT), None)


def focus_on_wave(context: RunContext, n: int | None = None) -> RunContext:
    """The run narrowed to one wave: this one, or by default the next one that is not out, or the last."""
    waves = context.ledger.waves.list(context.run_id)
    if n is not None:
        return context.narrow(find_wave(context.manifest, n).n)
    return context.narrow((find_next_wave(waves) or waves[-1]).n)


def narrow_to(context: RunContext, partitions: str | Sequence[str] | None, n: int | None = None) -> RunContext:
    """The run narrowed to this wave, to the one that the named partitions are in, or to the next one.

    Partitions of several waves leave the run whole.
    """
    if n is not None or partitions is None:
        return focus_on_wave(context, n)
    named = set(select_partitions(context.manifest, partitions))
    found = [one.n for one in context.ledger.waves.list(context.run_id) if not named.isdisjoint(one.partitions)]
    return context.narrow(found[0]) if len(found) == 1 else context


def refuse_groups(run: RunRecord, manifest: Manifest) -> None:
    """Refuse to publish a run that an earlier version planned in groups: they had one verdict for all of them."""
    if manifest.publish.groups is not None:
        raise StateRefused(
            f"publish of {run.run_id} was refused; it was planned with publish.groups, which is publish.waves now",
            state="main is unchanged by this command",
            hint=f'errata plan {run.product} … --supersede {run.run_id} --reason "…"',
        )


def require_wave_ready(context: RunContext, scope: Sequence[str], early: str | None, *, named: bool) -> dict[str, Any]:
    """Refuse a wave that is too early or stopped, or while the live pipeline is unhealthy.

    ``early`` is a person's reason not to wait; it lifts the pause and nothing else. Returns what the publication
    records about its waves.
    """
    refuse_groups(context.run, context.manifest)
    if early is not None and not early.strip():
        raise UsageError("--early without a reason was refused; say why the pause is skipped")
    settings, waves = context.manifest.publish.waves, context.ledger.waves.list(context.run_id)
    if settings is None or len(waves) == 1 or context.run.state in FINAL:
        return {}  # a run that has ended is refused later, with that reason
    wanted = set(scope)
    parts = [wave for wave in waves if not wanted.isdisjoint(wave.partitions)]
    if len(parts) > 1:
        error = StateRefused(
            f"publish of {context.run_id} was refused; expected partitions of one wave, found some of "
            f"waves {', '.join(str(wave.n) for wave in parts)}",
            state="main is unchanged",
            hint=f"errata publish {context.run_id} publishes the next wave",
        )
        raise audit_refusal(context.workspace, context.actor, context.run, "publish", error)
    require_not_stopped(context.workspace, context.actor, context.run)
    told: dict[str, Any] = {"n": [wave.n for wave in parts], "of": len(waves), "pause": settings.pause}
    told["pause_seconds"] = to_seconds(settings.pause)
    if named:
        told["named"] = True
    until, now = (
        compute_pause_end(settings, _find_last_publish_time(context.ledger.publications.list(context.run_id))),
        _now(context.workspace),
    )
    is_early = until is not None and now < until
    if until is not None and is_early and early is None:
        # not audited: being early is no violation, and a job that polls every minute would fill the audit log
        raise build_pause_error(context.run_id, settings.pause, until, now)
    if reading := find_pause_signal(context.workspace, context.manifest):
        raise audit_unhealthy_refusal(context.workspace, context.actor, context.run, reading)
    if is_early:
        require_person(
            context.workspace, context.actor, (Role.PUBLISHER,), "publish before the pause is over", context.run_id
        )
        context.ledger.audit.note(context.run_id, context.actor, "pause.skipped", {"waves": told["n"], "why": early})
        told["early"] = True
    return {"wave": told}


def require_not_stopped(workspace: Workspace, actor: Actor, run: RunRecord) -> None:
    """Refuse to continue after a pause, or after a part of the run was rolled back."""
    if stopped := find_stop_reason(workspace, run):
        raise audit_refusal(workspace, actor, run, "publish", build_stopped_error(run.run_id, stopped))


def _list_signals(workspace: Workspace, manifest: Manifest) -> tuple[Signal, ...]:
    """Health signals of the live pipeline: the project's and the product's."""
    product = workspace.project.products.get(manifest.product)
    return (*workspace.project.health, *(product.health if product else ()))


def watch_signals(workspace: Workspace, manifest: Manifest) -> HealthMonitor:
    """Monitor that reads the signals until it is closed; without signals no engine is started."""

    def read(signal: Signal) -> Decimal:
        return workspace.engines.probes.read(signal)

    return HealthMonitor(_list_signals(workspace, manifest), read, lambda _: None)


def find_pause_signal(workspace: Workspace, manifest: Manifest) -> Reading | None:
    """Read each signal once and return the reading that requires a pause, if any."""
    with watch_signals(workspace, manifest) as watch:
        worst = watch.worst
    return worst if worst and worst.level is Level.PAUSE else None


def audit_unhealthy_refusal(workspace: Workspace, actor: Actor, run: RunRecord, reading: Reading) -> StateRefused:
    """Build and audit the refusal to publish while the live pipeline is unhealthy."""
    error = StateRefused(
        f"publish of {run.run_id} was refused by a health signal: {reading.told}",
        state="what was published stays; the next wave waits",
        hint=f"look at the live pipeline first; then errata publish {run.run_id}",
        signal=reading.signal.name,
    )
    audit_refusal(workspace, actor, run, "publish", error)
    return error


def set_waves_going(workspace: Workspace, actor: Actor, run_id: str, *, going: bool) -> StateView | None:
    """Stop or continue the publication of a run's waves; None when it is one wave, or nothing of it is left.

    A run that is still computed is paused and resumed as a whole by the caller, who asks for this first.
    """
    run = workspace.ledger.runs.get(run_id)
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    waves = workspace.ledger.waves.list(run.run_id)
    if len(waves) == 1 or run.state in FINAL or find_next_wave(waves) is None:
        return None
    verb = "resume" if going else "pause"
    require_role(workspace, actor, (Role.OPERATOR, Role.PUBLISHER), verb, run.run_id)
    if going:
        require_person(workspace, actor, (Role.OPERATOR, Role.PUBLISHER), verb, run.run_id)
    already = going is not bool(find_stop_reason(workspace, run))
    if not already:
        workspace.ledger.audit.note(run.run_id, actor, RESUMED if going else PAUSED)
    if run.state in (RunState.RUNNING, RunState.PAUSED):
        return None
    if not going:
        return StateView(
            run.run_id, run.state.value, already, f"no further wave is published until: errata resume {run.run_id}"
        )
    found = turn_view(workspace, run, manifest, waves)
    later = f" at {format_moment(found.not_before)} UTC" if found and found.not_before else ""
    return StateView(run.run_id, run.state.value, already, f"the next wave may go{later}: errata publish {run.run_id}")


def describe_waves(manifest: Manifest) -> dict[str, Any]:
    """Waves of a plan for display; empty for one wave."""
    waves, found = manifest.publish.waves, list_waves(manifest)
    if waves is None:
        return {}
    return {
        "waves": {
            "size": waves.size,
            "pause": waves.pause,
            "order": resolve_wave_order(waves, manifest.order),
            "release": waves.release,
            "within": dict(waves.within),
            "waves": [list(wave.partitions) for wave in found],
            "with_last": list(list_last_rules(manifest)) if len(found) > 1 else [],
            "new_columns": [column.name for column in manifest.target.new_columns] if len(found) > 1 else [],
        }
    }


def turn_view(
    workspace: Workspace, run: RunRecord, manifest: Manifest, waves: Sequence[WaveRecord]
) -> WaveTurnView | None:
    """The next wave, and when it may be published; None for a run that is one wave."""
    settings = manifest.publish.waves
    if settings is None or len(waves) == 1:
        return None
    upcoming = find_next_wave(waves) if run.state not in FINAL else None
    last = _find_last_publish_time(workspace.ledger.publications.list(run.run_id))
    until = compute_pause_end(settings, last) if upcoming else None
    left = (until - _now(workspace)).total_seconds() if until else 0.0
    return WaveTurnView(
        of=len(waves),
        size=settings.size,
        pause=settings.pause,
        order=resolve_wave_order(settings, manifest.order),
        release=settings.release,
        next=upcoming.n if upcoming else None,
        not_before=until.replace(microsecond=0).isoformat() if until and left > 0 else None,
        seconds_left=max(0, round(left)),
        stopped=find_stop_reason(workspace, run) if upcoming else "",
    )


def wave_views(workspace: Workspace, run: RunRecord, waves: Sequence[WaveRecord]) -> tuple[WaveView, ...]:
    """The waves of a run, with when each was computed, judged and became visible."""
    publications = _find_committed(workspace.ledger.publications.list(run.run_id))
    by_partition = {name: one for one in publications for name in one.partitions}
    if len(waves) == 1:
        return (_wave_view(waves[0], by_partition, {}, _name_state(run, waves[0])),)
    chunks = workspace.ledger.progress.chunks(run.run_id)
    ended, left = _find_chunk_ends(workspace, run, chunks), estimate_seconds_left(chunks)
    return tuple(
        replace(_wave_view(wave, by_partition, ended, _name_state(run, wave)), seconds_to_compute=left.get(wave.n))
        for wave in waves
    )


def estimate_seconds_left(chunks: Sequence[ChunkRecord]) -> dict[int, int]:
    """Seconds until each wave is computed, at the pace of the chunks so far; none while no chunk runs. Pure."""
    done = [one for one in chunks if one.state is ChunkState.DONE and one.seconds is not None]
    running = sum(one.state is ChunkState.RUNNING for one in chunks)
    if not done or not running:
        return {}
    pace = sum(one.seconds or 0 for one in done) / sum(map(_weigh, done)) / running
    open_chunks = [one for one in chunks if one.state not in (ChunkState.DONE, ChunkState.REPLACED)]
    # waves are computed in order, so each waits for what is left of those before it
    return {
        n: round(pace * sum(_weigh(one) for one in open_chunks if wave_of_chunk(one.wave) <= n))
        for n in {wave_of_chunk(one.wave) for one in open_chunks}
    }


def _weigh(chunk: ChunkRecord) -> int:
    return max(1, chunk.bytes)


def _name_state(run: RunRecord, wave: WaveRecord) -> str:
    """The state of a wave in words; before its run starts, and after it was given up, that of the run."""
    is_idle = run.state in _IDLE and wave.state not in (*OUT, WaveState.PART_PUBLISHED)
    return run.state.value if is_idle else wave.state.value


def _wave_view(
    wave: WaveRecord, by_partition: Mapping[str, PublicationRecord], ended: Mapping[str, str], state: str
) -> WaveView:
    landed = {one.pub_id: one for name in wave.partitions if (one := by_partition.get(name))}
    own = sorted(landed.values(), key=lambda one: one.n)
    computed = [ended[name] for name in wave.partitions if name in ended]
    return WaveView(
        wave.n,
        wave.partitions,
        state,
        judged_at=wave.judged_at,
        visible_at=own[-1].settled_at if own else None,
        publications=tuple(one.pub_id for one in own),
        computed_at=max(computed) if len(computed) == len(wave.partitions) else None,
    )


def _find_chunk_ends(workspace: Workspace, run: RunRecord, chunks: Sequence[ChunkRecord]) -> dict[str, str]:
    """When the chunk of each partition was done."""
    attempts = workspace.ledger.progress.attempts(run.run_id)
    adopted = {one.chunk_id: one.ended_at for one in attempts if one.state.value == "adopted" and one.ended_at}
    return {name: adopted[one.chunk_id] for one in chunks if one.chunk_id in adopted for name in one.partitions}


def _find_committed(publications: Sequence[PublicationRecord]) -> list[PublicationRecord]:
    return [one for one in publications if one.kind == "publish" and one.state is PublicationState.COMMITTED]


def _find_last_publish_time(publications: Sequence[PublicationRecord]) -> str | None:
    return max((one.settled_at or "" for one in _find_committed(publications)), default=None)


def find_stop_reason(workspace: Workspace, run: RunRecord) -> str:
    """Why the waves are stopped: the newest pause or rollback, unless they were resumed since; else empty."""
    for entry in workspace.ledger.audit.readable_entries(run.run_id, limit=1, actions=WAVE_ACTIONS):
        when = f"{entry.actor.person}, {format_moment(entry.at)} UTC"
        if entry.action == TAKEN_BACK:
            return (
                f"{entry.body['publication']} rolled back {plural(len(entry.body['partitions']), 'partition')} ({when})"
            )
        if entry.action not in RESUME_ACTIONS:
            return f"paused by {when}"
    return ""


def _now(workspace: Workspace) -> datetime:
    return datetime.fromisoformat(workspace.ledger.now())
