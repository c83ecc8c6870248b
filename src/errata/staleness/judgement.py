"""Does a partition still follow from its inputs? The rule on values that others read. Pure.

A *claim* says what a partition was computed from: the pins of the run that published it, those of an attestation, or
what a live job reported. It counts only while the live files are those it is about, which
:mod:`errata.staleness.claims` makes sure of. What the partition reads is compared as a predicate, so that partitions of
an input count that are new, emptied or missing since. Without a claim only times are left
(:mod:`errata.staleness.times`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from errata.model.graph.read_rule import ReadRule
from errata.model.kafka.topic_reads import TopicReads, describe_other_records, has_other_records
from errata.model.partition import WHOLE, Grain, format_ranges
from errata.staleness.times import InputTimes, Written, find_time_reasons

CURRENT, STALE, WAITING = "current", "stale", "waiting"
RECORDED, REPORTED, TIME = "recorded", "reported", "time"
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a partition is stale or waits; ``input`` is None for a reason that concerns no input."""

    input: str | None
    basis: str  # recorded | reported | time
    event: str  # what happened, to ``partitions`` of the input if there are any
    partitions: tuple[str, ...] = ()
    parent: str | None = None  # the product that has to be corrected first
    grain: Grain | None = None  # of the partitions, if it is not the one that the input is read by

    def text(self, grain: Grain) -> str:
        """The reason in words; ``grain`` is the one that the input is read by."""
        names = tuple(name for name in self.partitions if name != WHOLE)
        return f"{format_ranges(self.grain or grain, names, _SHOWN)} {self.event}" if names else self.event


@dataclass(frozen=True, slots=True)
class InputState:
    """What is read of an input, at one time: where it is, by which rule, and the fingerprint of each partition."""

    location: str
    rule: ReadRule
    fingerprints: Mapping[str, str]  # of the partitions that hold something; WHOLE if it is read whole
    is_whole: bool = False
    is_fixed: bool = False  # read at a snapshot of each partition's own time, so that later changes do not concern it
    definition: str = ""  # digest of what else the product file says about how it is read
    snapshot_id: str | None = None
    topic: TopicReads | None = None  # of a topic that is read by partitions, where its offsets are known

    def list_reads(self, partition: str) -> tuple[str, ...]:
        """Partitions of the input that a partition of the product is computed from."""
        return (WHOLE,) if self.is_whole else self.rule.list_reads([partition])

    def list_held(self, partition: str) -> dict[str, str]:
        """Of what a partition reads, all that holds something, with its fingerprint."""
        reads = self.list_reads(partition)
        return {name: self.fingerprints[name] for name in reads if name in self.fingerprints}


@dataclass(frozen=True, slots=True)
class CodeState:
    """What computes the product."""

    call: str
    version: str
    config_digest: str
    used: str  # digest of the files that the transform uses


@dataclass(frozen=True, slots=True)
class Claim:
    """What someone recorded about how some partitions came about."""

    basis: str  # recorded | reported
    told_by: str  # run or job
    at_ms: int  # when it was recorded; the newest claim is named
    inputs: Mapping[str, InputState] | None  # None: its inputs are not on record, which ``unknown`` explains
    code: CodeState | None = None
    unknown: str = ""
    as_of_ms: int = 0  # the product's own output was read as it was then


Reads = Mapping[str, tuple[str, ...]]
"""Input → partitions of it."""
Explain = Callable[[str, InputState, tuple[str, ...]], tuple[tuple[str, ...], str]]
"""(input, its state then, changed partitions) → those that really changed, compactions aside, and by whom."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer for one partition."""

    partition: str
    state: str
    basis: str
    reasons: tuple[Reason, ...] = ()
    claim: Claim | None = None

    def add(self, reason: Reason) -> Judgement:
        """The same, stale for one more reason."""
        known = reason in self.reasons
        return self if known else replace(self, state=STALE, reasons=(*self.reasons, reason))


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the rule needs to know about a product."""

    grain: Grain
    inputs: Mapping[str, InputState]  # now
    code: CodeState
    claims: Mapping[str, Sequence[Claim]]  # by partition: those that speak for its live files, newest first
    written: Mapping[str, Written] = field(default_factory=dict)  # by partition, where no claim speaks
    times: Mapping[str, InputTimes] = field(default_factory=dict)  # by input
    longest_run_ms: int | None = None


def find_changed_reads(claim: Claim, inputs: Mapping[str, InputState], partition: str) -> dict[str, tuple[str, ...]]:
    """Partitions of each input that do not hold what they held when they were read, or are read only now or then."""
    found = {}
    for name, now in inputs.items():
        then = (claim.inputs or {}).get(name)
        if then is None or now.is_fixed or then.is_fixed or then.location != now.location:
            continue
        held, holds = then.list_held(partition), now.list_held(partition)
        changed = [one for one in sorted({*held, *holds}) if held.get(one) != holds.get(one)]
        if then.topic is not None and now.topic is not None:
            changed = [one for one in changed if has_other_records(then.topic, now.topic, one)]
        if changed:
            found[name] = tuple(changed)
    return found


def judge_partition(partition: str, facts: Facts, explain: Explain) -> Judgement:
    """Judge one partition: current if one of its claims holds, stale by its newest claim, or by time without any."""
    newest: Judgement | None = None
    for claim in facts.claims.get(partition, ()):
        reasons = tuple(_list_reasons(claim, facts, partition, explain))
        if not reasons:
            return Judgement(partition, CURRENT, claim.basis, claim=claim)
        newest = newest or Judgement(partition, STALE, claim.basis, reasons, claim)
    if newest is not None:
        return newest
    written = facts.written.get(partition, Written(None, "no file of it tells when it was computed"))
    told = find_time_reasons(written, facts.longest_run_ms, _list_reads(facts, partition), facts.times)
    reasons = tuple(Reason(one.input, TIME, one.what, one.partitions) for one in told)
    return Judgement(partition, STALE if told else CURRENT, TIME, reasons)


def _list_reads(facts: Facts, partition: str) -> Reads:
    return {name: now.list_reads(partition) for name, now in facts.inputs.items() if not now.is_fixed}


def _list_reasons(claim: Claim, facts: Facts, partition: str, explain: Explain) -> Iterable[Reason]:
    if claim.inputs is None:
        yield Reason(None, claim.basis, claim.unknown)
        return
    if claim.code is not None:
        yield from (Reason(None, claim.basis, what) for what in describe_code_change(claim.code, facts.code))
    for name, now in facts.inputs.items():
        then = claim.inputs.get(name)
        if then is None:
            yield Reason(name, claim.basis, "it was not an input then")
        elif then.location != now.location:
            yield Reason(name, claim.basis, f"{then.location} was read then, {now.location} is the input now")
        elif then.definition and then.definition != now.definition:
            yield Reason(name, claim.basis, "the product file says otherwise now how it is read")
    yield from (
        Reason(name, claim.basis, "it is no input any more") for name in claim.inputs if name not in facts.inputs
    )
    for name, changed in find_changed_reads(claim, facts.inputs, partition).items():
        really, by = explain(name, claim.inputs[name], changed)
        then, now = claim.inputs[name], facts.inputs[name]
        for event, names in _group_by_event(then, now, partition, really).items():
            yield Reason(name, claim.basis, f"{event}{f': {by}' if by else ''}", names)


def _group_by_event(
    then: InputState, now: InputState, partition: str, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Changed partitions of an input by what happened to them."""
    if (now.is_whole or then.is_whole) and names:
        return {"its data changed": ()}
    found: dict[str, tuple[str, ...]] = {}
    read_then, read_now = set(then.list_reads(partition)), set(now.list_reads(partition))
    for name in names:
        event = "changed"
        if name not in read_then:
            event = "was not read then"
        elif name not in read_now:
            event = "is not read any more"
        elif then.topic is not None and now.topic is not None:
            event = describe_other_records(then.topic, now.topic, name)
        elif name not in then.fingerprints:
            event = "is new"
        elif name not in now.fingerprints:
            event = "is empty now"
        found[event] = (*found.get(event, ()), name)
    return found


def describe_code_change(then: CodeState, now: CodeState) -> list[str]:
    """What differs between the code that computed a partition and the current code."""
    told = []
    if then.call != now.call:
        told.append(f"the transform was {then.call} and is {now.call}")
    elif then.version != now.version:
        told.append(f"the transform was version {then.version} and is {now.version}")
    elif then.used != now.used:
        told.append(f"the code of {now.call} changed within version {now.version}")
    if then.config_digest != now.config_digest:
        told.append("the config of the transform changed")
    return told


def find_own_reasons(
    rule: ReadRule, source: str, judged: Mapping[str, Judgement], committed_ms: Mapping[str, int]
) -> dict[str, Judgement]:
    """Partitions that build on earlier ones of the product itself: stale if those are, or were written again since.

    Oldest first, because what is stale makes what builds on it stale.
    """
    found: dict[str, Judgement] = {}
    for name in sorted(judged):
        one = judged[name]
        for read in rule.list_reads([name]):
            before = found.get(read, judged.get(read))
            if before is None:
                continue
            if before.state != CURRENT:
                one = one.add(Reason(source, before.basis, f"is {before.state}, and this builds on it", (read,)))
            elif one.claim and not _is_same_writer(one.claim, before.claim) and (
                committed_ms.get(read, 0) > one.claim.as_of_ms
            ):  # fmt: skip
                one = one.add(Reason(source, one.basis, "was written again since", (read,)))
        found[name] = one
    return found


def _is_same_writer(one: Claim, other: Claim | None) -> bool:
    return other is not None and one.told_by == other.told_by


def add_waiting(
    judged: Mapping[str, Judgement], waiting: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> dict[str, Judgement]:
    """A partition that is stale waits while an input that it reads is not complete; reasons of both are kept."""
    found = {}
    for name, one in judged.items():
        held = waiting.get(name, {}) if one.state == STALE else {}
        told = tuple(
            Reason(source, one.basis, f"is not complete: {why}", (read,))
            for source, reads in held.items()
            for read, why in reads.items()
        )
        found[name] = replace(one, state=WAITING, reasons=(*told, *one.reasons)) if held else one
    return found
