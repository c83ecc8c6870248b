"""The guardrails: every rule gives its verdict, not only the first that refuses. Pure; ``now`` is an argument.

A rule that refuses or warns may be set aside by a named override; the verdict stays visible as a warning that carries
the reason, and the override goes into the manifest. What no run could survive is final: nothing sets it aside. An
override of ``schema`` says ahead of the run that columns which the transform leaves out may be written as NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from errata.model.duration import before
from errata.model.manifest import Code, Estimate, Override
from errata.model.partition import NULL, end_of, fold_text, parse_list
from errata.model.product import Limits, Product
from errata.model.side_tables import is_beside
from errata.model.table import ROW_LINEAGE
from errata.planning.guardrail_result import Verdict
from errata.planning.request import RULES, Request, input_partitions
from errata.planning.restore import judge_restore
from errata.planning.schema import beside_problems, new_columns, schema_problems
from errata.planning.shared_files import judge_rewrite
from errata.planning.unnameable import unnameable_note
from errata.ports.tables import ActiveRun, Held, InputFacts, TargetFacts

_FEW_RETRIES = 10
_SHOWN = 12
_STREAMING = "streaming:"


@dataclass(frozen=True, slots=True)
class World:
    """Everything the rules look at."""

    request: Request
    product: Product
    limits: Limits
    partitions: tuple[str, ...]
    target: TargetFacts
    inputs: Mapping[str, InputFacts]
    code: Code
    estimate: Estimate
    now: datetime
    active_runs: Sequence[ActiveRun] = ()
    beside: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)  # tables beside the target; None: absent
    held: Held | None = None  # what a restore puts back
    core_hour_usd: str = "0"

    def folded(self, partitions: Sequence[str]) -> str:
        """Partitions as people read them; verdicts are kept for good, so a scattered scope is cut short."""
        return fold_text(self.product.target.grain, partitions, _SHOWN)


def judge(world: World) -> tuple[Verdict, ...]:
    """All verdicts, in the order of the rules; overrides applied, and those that did nothing reported."""
    why = {override.rule: override.why for override in world.request.overrides}
    verdicts: list[Verdict] = []
    for rule in RULES:
        found = list(_RULES[rule](world))
        verdicts += [_set_aside(verdict, why.get(rule)) for verdict in found]
        if rule in why and all(verdict.level == "ok" for verdict in found):
            verdicts.append(Verdict(rule, "warn", f"override {rule} was not needed: the rule did not fire"))
    return tuple(verdicts)


def is_refused(verdicts: Sequence[Verdict]) -> bool:
    """Whether any rule still refuses."""
    return any(verdict.level == "refuse" for verdict in verdicts)


def used_overrides(verdicts: Sequence[Verdict]) -> tuple[Override, ...]:
    """The overrides that set a verdict aside, one per rule."""
    used = {verdict.rule: verdict.override for verdict in verdicts if verdict.override}
    return tuple(Override(rule, why) for rule, why in sorted(used.items()))


def _set_aside(verdict: Verdict, why: str | None) -> Verdict:
    if why is None or verdict.level == "ok":
        return verdict
    if verdict.final:
        return replace(verdict, message=f"{verdict.message}; an override cannot set this aside")
    return replace(verdict, level="warn", override=why)


def _range(world: World) -> Iterator[Verdict]:
    count, most = len(world.partitions), world.limits.max_partitions
    if count > most:
        yield Verdict("range", "refuse", f"{count:,} partitions asked for; max_partitions is {most:,}")
    else:
        new = [name for name in world.partitions if name not in world.target.partitions]
        gap = f"; {len(new):,} not in the table yet: {world.folded(new)}" if new else ""
        yield Verdict("range", "ok", f"{count:,} ≤ {most:,}{gap}")
    if told := unnameable_note(world.target, world.product.target.column):
        yield Verdict("range", "warn", told)


def _recent(world: World) -> Iterator[Verdict]:
    grain, protect = world.product.target.grain, world.product.protect.recent
    if not grain.is_time or before(protect, world.now) == world.now:
        yield Verdict("recent", "ok", "nothing is protected as recent")
        return
    limit = before(protect, world.now)
    dated = [name for name in world.partitions if name != NULL]
    hit = [name for name in dated if end_of(grain, name) > limit]
    if hit:
        yield Verdict("recent", "refuse", f"{world.folded(hit)} closed less than {protect} ago (protect.recent)")
    else:
        yield Verdict("recent", "ok", f"every partition closed at least {protect} ago")


def _locked(world: World) -> Iterator[Verdict]:
    locked: set[str] = set()
    for item in world.product.protect.locked:
        locked.update(parse_list(world.product.target.grain, item))
    hit = [name for name in world.partitions if name in locked]
    if hit:
        yield Verdict("locked", "refuse", f"{world.folded(hit)} locked (protect.locked: closed books)")
    else:
        yield Verdict("locked", "ok", "no partition is locked")


def _missing(world: World, facts: InputFacts) -> tuple[list[str], list[str]]:
    """Missing partitions of an input: those to be published, and those only looked back (or ahead) at."""
    source = next(item for item in world.product.inputs if item.name == facts.name)
    asked = () if facts.whole else input_partitions(source, world.product.target.grain, world.partitions)
    scope = set(world.partitions)
    if source.own:
        asked = tuple(name for name in asked if name not in scope)  # the run itself makes the others
    missing = [name for name in asked if name not in facts.partitions]
    return [name for name in missing if name in scope], [name for name in missing if name not in scope]


def _source_missing(world: World) -> Iterator[Verdict]:
    complete = True
    for facts in world.inputs.values():
        inside, around = _missing(world, facts)
        if inside:
            count = f"{len(inside):,} of {len(world.partitions):,} partitions"
            yield Verdict("source-missing", "refuse", f"{facts.name}: {count} missing: {world.folded(inside)}")
        if around:
            yield Verdict("source-missing", "warn", f"{facts.name}: look-back is short of {world.folded(around)}")
        complete = complete and not inside and not around
    if complete:
        total = len(world.partitions)
        yield Verdict("source-missing", "ok", f"{total:,} of {total:,} partitions present in every partitioned source")


def _source_retention(world: World) -> Iterator[Verdict]:
    passed = False
    for facts in world.inputs.values():
        inside, around = _missing(world, facts)
        oldest = facts.oldest
        gone = [name for name in (*around, *inside) if oldest is not None and name != NULL and name < oldest]
        if gone:
            passed = True
            text = f"{facts.name} begins at {oldest}; {world.folded(gone)} are older: retention has probably passed"
            yield Verdict("source-retention", "warn", text)
    if not passed:
        yield Verdict("source-retention", "ok", "no source begins after what is asked for")


def _empty(world: World) -> Iterator[Verdict]:
    scope, found = set(world.partitions), False
    for facts in world.inputs.values():
        hit = [
            name
            for name, size in facts.partitions.items()
            if name in scope and (size.bytes == 0 or (facts.rows_known and size.rows == 0))
        ]
        if hit:
            found = True
            yield Verdict("empty", "refuse", f"{facts.name}: no rows in {world.folded(hit)}; they would be emptied")
    if not found:
        yield Verdict("empty", "ok", "no source partition is empty")


def _overlap(world: World) -> Iterator[Verdict]:
    scope, found = frozenset(world.partitions), False
    for run in world.active_runs:
        both = scope & run.partitions if run.table == world.target.table else frozenset()
        if both and run.run_id != world.request.supersede:
            found = True
            text = (
                f"run {run.run_id} ({run.state}) holds {world.folded(sorted(both))}; "
                f"--supersede {run.run_id} plans in its place"
            )
            yield Verdict("overlap", "refuse", text)
    if not found:
        yield Verdict("overlap", "ok", "no other active run on these partitions")


def _append(world: World) -> Iterator[Verdict]:
    if world.product.publish.mode != "append":
        return
    full = [name for name in world.partitions if world.target.expected.get(name) or name in world.target.partitions]
    if full:
        count = f"{len(full):,} of {len(world.partitions):,} partitions"
        text = f"{count} are not empty: {world.folded(full)}; mode append only adds, another mode corrects"
        yield Verdict("append", "refuse", text, final=True)
    else:
        yield Verdict("append", "ok", f"all {len(world.partitions):,} partitions are empty")


def _restore(world: World) -> Iterator[Verdict]:
    if world.held is not None:
        yield from judge_restore(world.held, world.product.target.grain, world.partitions)


def _cap(rule: str, found: Decimal | int, most: Decimal | int | None, unit: str, *, is_known: bool = True) -> Verdict:
    if most is None:
        return Verdict(rule, "ok", f"{found:,}{unit}; no limit set" if is_known else "unknown; no limit set")
    if not is_known:
        return Verdict(rule, "warn", f"unknown, source files are not opened; the limit is {most:,}{unit}")
    if found > most:
        return Verdict(rule, "refuse", f"{found:,}{unit} estimated; the limit is {most:,}{unit}")
    return Verdict(rule, "ok", f"{found:,} ≤ {most:,}{unit}")


def _rows(world: World) -> Iterator[Verdict]:
    known = all(facts.rows_known for facts in world.inputs.values())
    most = world.limits.max_rows
    is_known = known or (most is not None and world.estimate.rows > most)
    yield _cap("rows", world.estimate.rows, most, " rows", is_known=is_known)


def _bytes(world: World) -> Iterator[Verdict]:
    yield _cap("bytes", world.estimate.bytes, world.limits.max_bytes, " bytes")


def _cost(world: World) -> Iterator[Verdict]:
    most = world.limits.max_usd
    if most is not None and Decimal(world.core_hour_usd) <= 0:
        found = f"limits.max_usd is {most} and price.core_hour_usd is {world.core_hour_usd}, so no run could reach it"
        yield Verdict("cost", "refuse", f"{found}; give a price or take the limit out")
        return
    yield _cap("cost", Decimal(world.estimate.usd), None if most is None else Decimal(most), " USD")


def _streaming_readers(world: World) -> Iterator[Verdict]:
    streams = [name for name in world.product.consumers if name.startswith(_STREAMING)]
    if streams and world.product.publish.mode == "append":
        yield Verdict("streaming-readers", "ok", f"{', '.join(streams)}: an append reaches a stream as new rows")
    elif streams and is_beside(world.product.publish):
        yield Verdict("streaming-readers", "ok", f"{', '.join(streams)}: {world.target.table} is not touched")
    elif streams:
        text = f"{', '.join(streams)}: a stream fails on the overwrite, or skips it and never sees the correction"
        yield Verdict("streaming-readers", "refuse", text)
    else:
        yield Verdict("streaming-readers", "ok", "no consumer is declared as streaming")


def _dirty_tree(world: World) -> Iterator[Verdict]:
    if world.held is not None:
        yield Verdict("dirty-tree", "ok", "no code of the project runs")
    elif world.code.git_dirty:
        text = "uncommitted changes: the zip that runs is kept, but no commit has this code"
        yield Verdict("dirty-tree", "warn", text)
    elif world.code.git_commit:
        yield Verdict("dirty-tree", "ok", f"git {world.code.git_commit[:7]}")
    else:
        yield Verdict("dirty-tree", "ok", "not a git work tree; the zip that runs is kept")


def _schema(world: World) -> Iterator[Verdict]:
    problems = (
        *schema_problems(world.product, world.target, world.inputs, world.partitions),
        *beside_problems(world.product, world.target, world.beside),
    )
    for problem in problems:
        yield Verdict("schema", "refuse", problem, final=True)
    if problems:
        return
    new = new_columns(world.product.target, world.target)
    told = f"; new with the publication: {', '.join(f'{c.name} {c.type}' for c in new)}" if new else ""
    yield Verdict("schema", "ok", f"partition spec, key and lineage columns agree with the product{told}")
    if world.target.format_version >= ROW_LINEAGE and not is_beside(world.product.publish):
        told = "rows that are published or rolled back get a new _row_id and _last_updated_sequence_number"
        yield Verdict("schema", "ok", f"format v{world.target.format_version}: {told}")
    if any(override.rule == "schema" for override in world.request.overrides):
        yield Verdict("schema", "warn", "columns that the transform leaves out are written as NULL, where they may be")


def _rewrite(world: World) -> Iterator[Verdict]:
    if not is_beside(world.product.publish):
        yield from judge_rewrite(world.product.target, world.target)


def _live_retries(world: World) -> Iterator[Verdict]:
    text = world.target.properties.get("commit.retry.num-retries", "4")
    if text.isdigit() and int(text) < _FEW_RETRIES:
        yield Verdict(
            "live-retries",
            "warn",
            f"live writers retry a commit {text} times; each of our commits can cost them one. Consider ALTER TABLE "
            f"{world.target.table} SET TBLPROPERTIES ('commit.retry.num-retries'='30')",
        )
    else:
        yield Verdict("live-retries", "ok", f"live writers retry a commit {text} times")


_RULES: dict[str, Callable[[World], Iterator[Verdict]]] = {
    "range": _range,
    "recent": _recent,
    "locked": _locked,
    "source-missing": _source_missing,
    "source-retention": _source_retention,
    "empty": _empty,
    "overlap": _overlap,
    "append": _append,
    "restore": _restore,
    "rows": _rows,
    "bytes": _bytes,
    "cost": _cost,
    "streaming-readers": _streaming_readers,
    "dirty-tree": _dirty_tree,
    "schema": _schema,
    "rewrite": _rewrite,
    "live-retries": _live_retries,
}
