"""Rules of a wave: those of its partitions, and those of the run as far as it has got.

A rule ``per: run`` counts in full with the last wave. Before that, only rules that can get no better are judged, on the
waves so far, so that a run that has already failed ends early. Numbers of earlier waves are read from the ledger;
what cannot be added up, keys that repeat in another partition and totals of whole inputs, is measured once, on the
files of all waves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from errata.errors import StateRefused
from errata.gate.candidate import assemble_candidate, measure_manifest, require_adopted_chunks
from errata.gate.measure.names import is_across_partitions
from errata.ledger import WaveRecord
from errata.model.manifest import Manifest
from errata.model.product import Check, Metric
from errata.ports.measure import CANDIDATE, Measurement
from errata.workspace import RunContext

_UPPER_LIMITS = frozenset({"mustBeLessThan", "mustBeLessOrEqualTo"})


@dataclass(frozen=True, slots=True)
class RunRules:
    """The rules ``per: run`` that are judged with a wave, and the numbers of the waves before it."""

    manifest: Manifest  # the partitions so far, and these rules alone
    earlier: tuple[Measurement, ...] = ()


def only_gets_worse(check: Check) -> bool:
    """Whether a count that is beyond its limit now cannot be within it when more rows are added."""
    if check.metric is Metric.FRESHNESS or check.unit != "rows":
        return False
    is_zero = check.threshold.operator == "mustBe" and Decimal(check.threshold.operand) == 0
    return is_zero or check.threshold.operator in _UPPER_LIMITS


def _counts_early(check: Check, manifest: Manifest) -> bool:
    """Whether a rule of the run is judged with every wave; keys of all waves are compared once, with the last."""
    return only_gets_worse(check) and not is_across_partitions(check, manifest.target)


def list_last_rules(manifest: Manifest) -> tuple[str, ...]:
    """Names of the rules that are judged with the last wave only."""
    checks = (one.name for one in manifest.checks if one.per == "run" and not _counts_early(one, manifest))
    return (*checks, *(one.name for one in manifest.reconcile if one.per == "run"))


def select_run_rules(context: RunContext, rules: Manifest) -> RunRules | None:
    """The rules of the run that are judged with this context's wave; None for a run that is one wave.

    ``rules`` is the manifest of the whole run with the thresholds that count now.
    """
    wave = context.wave
    if wave is None:
        return None
    waves = context.ledger.waves.list(context.run_id)
    is_last = wave.n == len(waves)
    earlier = [one for one in waves if one.n < wave.n]
    so_far = {name for one in (*earlier, wave) for name in one.partitions}
    checks = [one for one in rules.checks if one.per == "run" and (is_last or _counts_early(one, rules))]
    chosen = replace(
        rules,
        partitions=tuple(name for name in rules.partitions if name in so_far),
        checks=tuple(checks),
        reconcile=tuple(one for one in rules.reconcile if one.per == "run") if is_last else (),
    )
    if not chosen.checks and not chosen.reconcile:
        return RunRules(chosen)
    return RunRules(chosen, _read_earlier(context, earlier))


def _read_earlier(context: RunContext, waves: Iterable[WaveRecord]) -> tuple[Measurement, ...]:
    """What was counted in the output of earlier waves; refuses while one of them is not judged."""
    found: list[Measurement] = []
    for wave in waves:
        if wave.candidate_n is None:
            raise StateRefused(
                f"validate of wave {context.wave.n if context.wave else 0} of {context.run_id} was refused; rules of "
                f"the whole run add up all waves before it, and wave {wave.n} is not judged yet",
                state="nothing was changed",
                hint=f"errata validate {context.run_id}",
            )
        stored = context.ledger.candidates.measurements(context.run_id, wave.candidate_n)
        names = set(wave.partitions)
        found += [one for one in stored if one.scope == CANDIDATE and one.partition in names]
    return tuple(found)


def measure_whole_run(context: RunContext) -> tuple[Measurement, ...]:
    """Numbers over the files of all waves that cannot be added up from theirs; none unless this is the last wave."""
    if context.wave is None or context.wave.n < len(context.ledger.waves.list(context.run_id)):
        return ()
    whole = context.widen()
    across = tuple(one for one in whole.manifest.checks if is_across_partitions(one, whole.manifest.target))
    totals = tuple(one for one in whole.manifest.reconcile if one.per == "run")
    if not across and not totals:
        return ()
    only = replace(
        whole.manifest,
        checks=across,
        reconcile=totals,
        compare=(),
        distribution=(),
        reconstruct=None,
        control=(),
        control_partitions={},
        row_limits=(),
    )
    candidate = assemble_candidate(whole, require_adopted_chunks(whole))
    measured = measure_manifest(replace(whole, manifest=only), candidate)
    # its branch has no other use, and a newer candidate of all partitions would pass for that of each wave
    whole.ledger.candidates.abandon(whole.run_id, candidate.n, whole.actor, "measured for the rules of the whole run")
    return tuple(one for one in measured if not one.partition)
