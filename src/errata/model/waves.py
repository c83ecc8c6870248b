"""Waves: parts of a run that are computed, judged, released and published one after the other. Pure.

A run without ``publish.waves`` is one wave. A wave's state is read from what the ledger holds about its chunks, its
candidate and its partitions, and the state of the run follows from its waves: nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from errata.errors import PublishHeld, StateRefused, UsageError
from errata.model.duration import count_steps, to_seconds
from errata.model.manifest import Chunk, Manifest
from errata.model.partition import NULL, Grain, sort_newest_first, sort_oldest_first, to_ordinal
from errata.model.product import Waves
from errata.model.run import RunState
from errata.text.numbers import format_duration, plural

PAUSED, RESUMED, TAKEN_BACK = "waves.paused", "waves.resumed", "rollback.committed"
WAVE_ACTIONS = (PAUSED, RESUMED, TAKEN_BACK, "groups.paused", "groups.resumed")
"""Audit actions that stop or resume a run's waves; the newest entry decides. The last two are of older ledgers."""
RESUME_ACTIONS = (RESUMED, "groups.resumed")


class WaveState(StrEnum):
    """State of a wave; the words are those of a run's states."""

    COMPUTING = "computing"
    STAGED = "staged"
    REJECTED = "rejected"
    NEEDS_ACCEPTANCE = "needs_acceptance"
    VALIDATED = "validated"
    PUBLISHING = "publishing"
    PART_PUBLISHED = "part_published"
    PUBLISHED = "published"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"


W = WaveState
OUT = frozenset({W.PUBLISHED, W.ROLLED_BACK, W.SUPERSEDED})
"""Nothing of the wave is left to publish."""
BLOCKED = frozenset({W.REJECTED, W.NEEDS_ACCEPTANCE})
"""A person decides before this wave, and every later one, may go."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Partitions that are judged and published together; ``n`` counts from 1 in order of publication."""

    n: int
    partitions: tuple[str, ...]  # oldest first


def resolve_wave_order(waves: Waves, order: str) -> str:
    """Order of the waves, newest or oldest first; by default the order in which the run computes."""
    return waves.order or ("newest" if order == "newest" else "oldest")


def split_into_waves(
    waves: Waves | None, order: str, grain: Grain, partitions: Collection[str], canary: Collection[str] = ()
) -> tuple[Wave, ...]:
    """Cut the scope into waves; every partition is in one wave, and the last may be smaller.

    Canary partitions are computed first, so they go with the first wave. A size in time counts calendar partitions, so
    that a gap in the scope does not move the cuts.

    >>> days = ["2026-01-01", "2026-01-02", "2026-01-09"]
    >>> [wave.partitions for wave in split_into_waves(Waves("2", "30min"), "newest", Grain.DAY, days)]
    [('2026-01-02', '2026-01-09'), ('2026-01-01',)]
    >>> [wave.partitions for wave in split_into_waves(Waves("7d", "30min"), "oldest", Grain.DAY, days)]
    [('2026-01-01', '2026-01-02'), ('2026-01-09',)]
    """
    if waves is None:
        return (Wave(1, sort_oldest_first(grain, partitions)),) if partitions else ()
    newest_first = resolve_wave_order(waves, order) == "newest"
    ordered = (sort_newest_first if newest_first else sort_oldest_first)(grain, partitions)
    early = frozenset(canary)
    if early:
        ordered = (*(name for name in ordered if name in early), *(name for name in ordered if name not in early))
    cuts = _cut_by_count(ordered, int(waves.size)) if waves.size.isdigit() else _cut_by_span(waves.size, grain, ordered)
    return tuple(Wave(n, sort_oldest_first(grain, cut)) for n, cut in enumerate(cuts, 1))


def count_wave_size(size: str, grain: Grain) -> int:
    """Most partitions in a wave; a size in time must be at least one partition and a whole number of them."""
    if size.isdigit():
        return int(size)
    steps = count_steps(size, grain)
    if steps < 1:
        raise UsageError(f"size {size!r} was refused; expected at least one {grain}")
    return steps


def _cut_by_count(ordered: Sequence[str], size: int) -> list[Sequence[str]]:
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def _cut_by_span(size: str, grain: Grain, ordered: Sequence[str]) -> list[Sequence[str]]:
    """Cut where the calendar says so, counted from the first partition in order."""
    span = count_wave_size(size, grain)
    first = next((to_ordinal(grain, name) for name in ordered if name != NULL), 0)
    cuts: dict[int, list[str]] = {}
    for name in ordered:
        at = abs(to_ordinal(grain, name) - first) // span if name != NULL else 0
        cuts.setdefault(at, []).append(name)
    return list(cuts.values())


def derive_wave_state(
    *, is_computed: bool, judged: RunState | None, partitions: Iterable[str], is_publishing: bool
) -> WaveState:
    """The state of a wave from its chunks, the newest verdict on its candidate, and the states of its partitions.

    ``partitions`` are unpublished, accepted, rolled_back or superseded.
    """
    if is_publishing:
        return W.PUBLISHING
    found = set(partitions)
    if "accepted" in found:
        return W.PART_PUBLISHED if "unpublished" in found else W.PUBLISHED
    if "superseded" in found:
        return W.SUPERSEDED
    if "rolled_back" in found:
        return W.ROLLED_BACK
    if not is_computed:
        return W.COMPUTING
    return W.STAGED if judged is None else W(judged.value)


_STATE_OF_RUN = {
    W.STAGED: RunState.STAGED,
    W.REJECTED: RunState.REJECTED,
    W.NEEDS_ACCEPTANCE: RunState.NEEDS_ACCEPTANCE,
    W.VALIDATED: RunState.VALIDATED,
    W.PART_PUBLISHED: RunState.PART_PUBLISHED,
}


def derive_run_state(waves: Sequence[WaveState]) -> RunState:
    """The state of a run from its waves: running while one is computed, then that of the first that is not out.

    >>> derive_run_state([WaveState.PUBLISHED, WaveState.COMPUTING]), derive_run_state([WaveState.VALIDATED])
    (<RunState.RUNNING: 'running'>, <RunState.VALIDATED: 'validated'>)
    """
    if W.COMPUTING in waves:
        return RunState.RUNNING
    if W.PUBLISHING in waves:
        return RunState.PUBLISHING
    waiting = [state for state in waves if state not in OUT]
    if W.PUBLISHED in waves:
        return RunState.PART_PUBLISHED if waiting else RunState.PUBLISHED
    if waiting:
        return _STATE_OF_RUN[waiting[0]]
    return RunState.SUPERSEDED if W.SUPERSEDED in waves else RunState.ROLLED_BACK


def to_run_state(state: WaveState) -> RunState:
    """The state that a run of this wave alone would have."""
    return RunState.RUNNING if state is W.COMPUTING else RunState(state.value)


def narrow_to_partitions(manifest: Manifest, names: Collection[str]) -> Manifest:
    """The manifest limited to these partitions and to the rules that each partition is judged by."""
    wanted = frozenset(names)
    return replace(
        manifest,
        partitions=tuple(name for name in manifest.partitions if name in wanted),
        checks=tuple(check for check in manifest.checks if check.per != "run"),
        reconcile=tuple(rule for rule in manifest.reconcile if rule.per != "run"),
    )


def wave_of_chunk(chunk_wave: int) -> int:
    """The wave that a chunk goes with: the canary is computed before the first wave and published with it."""
    return max(1, chunk_wave)


def list_waves(manifest: Manifest) -> tuple[Wave, ...]:
    """The waves of a sealed plan, as its chunks have them; one that computes nothing is one wave."""
    return group_into_waves(manifest.target.grain, manifest.chunks) or (Wave(1, manifest.partitions),)


def group_into_waves(grain: Grain, chunks: Iterable[Chunk]) -> tuple[Wave, ...]:
    """The waves that chunks go with."""
    found: dict[int, list[str]] = {}
    for chunk in chunks:
        found.setdefault(wave_of_chunk(chunk.wave), []).extend(chunk.partitions)
    return tuple(Wave(n, sort_oldest_first(grain, names)) for n, names in sorted(found.items()))


def find_wave(manifest: Manifest, n: int) -> Wave:
    """The wave with this number; refused with the numbers that there are."""
    waves = list_waves(manifest)
    if 1 <= n <= len(waves):
        return waves[n - 1]
    raise UsageError(f"wave {n} was refused; the run has {plural(len(waves), 'wave')}", state="nothing was changed")


def compute_pause_end(waves: Waves, published_at: str | None) -> datetime | None:
    """When the next wave may go, given when the last one landed; None before the first."""
    if published_at is None:
        return None
    return datetime.fromisoformat(published_at) + timedelta(seconds=to_seconds(waves.pause))


def count_pause_days(waves: Waves | None) -> int:
    """The pause in whole days, rounded up: what the next wave needs must outlive it."""
    return -(-to_seconds(waves.pause) // 86_400) if waves else 0


def build_pause_error(run_id: str, pause: str, until: datetime, now: datetime) -> PublishHeld:
    """Error for a publication before the pause has ended."""
    left = max(1, round((until - now).total_seconds()))
    at = until.replace(microsecond=0).isoformat()
    return PublishHeld(
        f"publish of {run_id} was refused; the pause of {pause} after its last wave has "
        f"{format_duration(left)} left, until {at[:19].replace('T', ' ')} UTC",
        state="what was published stays; the next wave waits",
        hint=f"errata publish {run_id} --wait\nor after the pause: errata publish {run_id}",
        run_id=run_id,
        until=at,
        seconds_left=left,
    )


def build_stopped_error(run_id: str, why: str) -> StateRefused:
    """Error for a publication while the waves are stopped."""
    return StateRefused(
        f"publish of {run_id} was refused; its waves are stopped: {why}",
        state="what was published stays; the next wave waits",
        hint=f"errata resume {run_id} continues them; errata rollback restores the previous data",
    )
