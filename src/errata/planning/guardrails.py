"""Check a plan against every guardrail rule, not only up to the first refusal. Pure; ``now`` is an argument.

A named override can set aside a rule that refuses or warns; the result stays visible as a warning with the reason, and
the override goes into the manifest. Results that no run could survive are final and cannot be overridden. An override
of ``schema`` allows columns that the transform leaves out to be written as NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from errata.model.duration import subtract_duration
from errata.model.kafka.topic_range import ASSUMED_RECORD_BYTES
from errata.model.manifest import Override
from errata.model.partition import NULL, end_of, parse_list
from errata.model.refs import describe_unknown_runs
from errata.model.side_tables import is_side_table_mode
from errata.model.table import ROW_LINEAGE
from errata.planning.consumer_rules import CONSUMERS, STREAMS, check_consumers, check_streaming_readers
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.inputs.change_log_rules import RULE, check_change_logs
from errata.planning.inputs.completeness import check_waiting
from errata.planning.inputs.privacy_rules import PRIVACY, check_privacy
from errata.planning.inputs.rebuild_rules import RULE_VERSIONS, check_rule_versions
from errata.planning.inputs.references import check_references
from errata.planning.inputs.restore_origin import check_origin
from errata.planning.kinds import PROTECTING_RULES, check_kind
from errata.planning.plan_context import PlanContext
from errata.planning.request import RULES
from errata.planning.restore import INPUT, check_restore
from errata.planning.schema import find_new_columns, find_schema_problems, find_side_table_problems
from errata.planning.shared_files import check_rewrite
from errata.planning.source_rules import check_empty, check_source_missing, check_source_retention
from errata.planning.unnameable import describe_unnameable
from errata.text.numbers import plural

_FEW_RETRIES = 10
_LIMITS = {"rows": "max_rows", "bytes": "max_bytes", "cost": "max_usd"}


def check_guardrails(world: PlanContext) -> tuple[GuardrailResult, ...]:
    """Results of all rules, in order, with overrides applied; an override that was not needed gives a warning."""
    why = {override.rule: override.why for override in world.request.overrides}
    verdicts: list[GuardrailResult] = []
    changes_main = world.kind.changes_table and not world.kind.only_copies
    applicable = [rule for rule in RULES if changes_main or rule not in PROTECTING_RULES]
    for rule in applicable:
        found = list(_RULES[rule](world))
        verdicts += [_apply_override(verdict, why.get(rule)) for verdict in found]
        if rule in why and all(verdict.level == "ok" for verdict in found):
            verdicts.append(GuardrailResult(rule, "warn", f"override {rule} was not needed: the rule did not fire"))
    return tuple(verdicts)


def is_refused(verdicts: Sequence[GuardrailResult]) -> bool:
    """Whether any rule still refuses."""
    return any(verdict.level == "refuse" for verdict in verdicts)


def list_used_overrides(verdicts: Sequence[GuardrailResult]) -> tuple[Override, ...]:
    """Overrides that set a result aside, one per rule."""
    used = {verdict.rule: verdict.override for verdict in verdicts if verdict.override}
    return tuple(Override(rule, why) for rule, why in sorted(used.items()))


def _apply_override(verdict: GuardrailResult, why: str | None) -> GuardrailResult:
    if why is None or verdict.level == "ok":
        return verdict
    if verdict.final:
        return replace(verdict, message=f"{verdict.message}; an override cannot set this aside")
    return replace(verdict, level="warn", override=why)


def _check_range(world: PlanContext) -> Iterator[GuardrailResult]:
    count, most = len(world.partitions), world.limits.max_partitions
    if count > most:
        text = f"{count:,} partitions asked for; limits.max_partitions is {most:,}"
        look = (f"plan in steps of at most {most:,} partitions; limits.max_partitions in errata.yaml is the limit",)
        yield GuardrailResult("range", "refuse", text, look=look, is_limit=True)
    else:
        new = [name for name in world.partitions if name not in world.target.partitions]
        gap = f"; {len(new):,} not in the table yet: {world.folded(new)}" if new else ""
        yield GuardrailResult("range", "ok", f"{count:,} ≤ {most:,}{gap}")
    if told := describe_unnameable(world.target, world.product.target.column):
        yield GuardrailResult("range", "warn", told)


def _check_recent(world: PlanContext) -> Iterator[GuardrailResult]:
    grain, protect = world.product.target.grain, world.product.protect.recent
    if not grain.is_time or subtract_duration(protect, world.now) == world.now:
        yield GuardrailResult("recent", "ok", "nothing is protected as recent")
        return
    limit = subtract_duration(protect, world.now)
    dated = [name for name in world.partitions if name != NULL]
    hit = [name for name in dated if end_of(grain, name) > limit]
    if hit:
        text = f"{world.folded(hit)} closed less than {protect} ago (protect.recent)"
        look = (f"wait until they are {protect} old: late rows may still arrive",)
        yield GuardrailResult("recent", "refuse", text, look=look, leave_out=frozenset(hit))
    else:
        yield GuardrailResult("recent", "ok", f"every partition closed at least {protect} ago")


def _check_locked(world: PlanContext) -> Iterator[GuardrailResult]:
    locked: set[str] = set()
    for item in world.product.protect.locked:
        locked.update(parse_list(world.product.target.grain, item))
    hit = [name for name in world.partitions if name in locked]
    if hit:
        be = "is" if len(hit) == 1 else "are"
        text = f"{world.folded(hit)} {be} locked (protect.locked: closed books)"
        look = (f"ask {world.product.owner}, who closed these books",)
        yield GuardrailResult("locked", "refuse", text, look=look, leave_out=frozenset(hit))
    else:
        yield GuardrailResult("locked", "ok", "no partition is locked")


def _check_overlap(world: PlanContext) -> Iterator[GuardrailResult]:
    scope = frozenset(world.partitions)
    others = [run for run in world.active_runs if run.run_id != world.request.supersede]
    holders = [run for run in others if run.table == world.target.table and scope & run.partitions]
    for run in holders:
        both = scope & run.partitions
        text = f"{run.noun} {run.run_id} ({run.state}) holds {world.folded(sorted(both))}"
        look: tuple[str, ...] = (f"errata status {run.run_id}",)
        if len(holders) > 1 and run.noun == "run":  # one plan supersedes one run
            look += (f'errata cancel {run.run_id} --reason "…" gives its partitions back',)
        # only a campaign takes the place of a campaign
        other = run.run_id if run.noun == "run" else None
        yield GuardrailResult("overlap", "refuse", text, look=look, leave_out=both, supersede=other)
    if not holders:
        yield GuardrailResult("overlap", "ok", "no other active run on these partitions")


def _check_ledger(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse a first run beside runs of another ledger; a ledger that has runs of the table may be a restored one.

    Leftovers made after the backup must not block a restored ledger, so they only give a warning.
    """
    if not world.unknown_runs:
        yield GuardrailResult("ledger", "ok", "every run with a branch or tag on the table is in this ledger")
        return
    level = "refuse" if world.is_first_run else "warn"
    yield GuardrailResult("ledger", level, describe_unknown_runs(world.unknown_runs), look=("errata doctor",))


def _check_append(world: PlanContext) -> Iterator[GuardrailResult]:
    if world.product.publish.mode != "append":
        return
    full = [name for name in world.partitions if world.target.expected.get(name) or name in world.target.partitions]
    if full:
        count = f"{len(full):,} of {plural(len(world.partitions), 'partition')}"
        are = "is" if len(full) == 1 else "are"
        text = f"{count} {are} not empty: {world.folded(full)}; publish.mode append only adds rows"
        look = ("set publish.mode in the product file to one that corrects, such as replace_partitions",)
        yield GuardrailResult("append", "refuse", text, final=True, look=look, leave_out=frozenset(full))
    else:
        yield GuardrailResult("append", "ok", f"all {len(world.partitions):,} partitions are empty")


def _check_restore_rule(world: PlanContext) -> Iterator[GuardrailResult]:
    if world.origin is not None:
        yield from check_origin(world.origin, world.inputs[INPUT], world.product.target.grain, world.partitions)
    if world.held is not None:
        look = (f"errata history {world.target.table} {world.partitions[0]}",)
        target = world.product.target
        for result in check_restore(world.held, target.grain, world.partitions, target.subjects):
            yield replace(result, look=look) if result.level == "refuse" else result


def _check_cap(
    rule: str, found: Decimal | int, most: Decimal | int | None, unit: str, *, is_known: bool = True
) -> GuardrailResult:
    if most is None:
        return GuardrailResult(
            rule,
            "ok",
            f"{found:,}{unit}; no limit set" if is_known else "not known exactly before they are read; no limit set",
        )
    if not is_known:
        return GuardrailResult(rule, "warn", f"not known exactly before they are read; the limit is {most:,}{unit}")
    if found > most:
        look = (f"plan fewer partitions at a time; limits.{_LIMITS[rule]} in errata.yaml is the limit",)
        return GuardrailResult(rule, "refuse", f"{found:,}{unit} estimated; the limit is {most:,}{unit}", look=look)
    return GuardrailResult(rule, "ok", f"{found:,} ≤ {most:,}{unit}")


def _check_rows(world: PlanContext) -> Iterator[GuardrailResult]:
    known = all(facts.rows_known for facts in world.inputs.values())
    most = world.limits.max_rows
    # a partial count above the limit is enough to refuse
    is_known = known or (most is not None and world.estimate.rows > most)
    yield _check_cap("rows", world.estimate.rows, most, " rows", is_known=is_known)


def _check_bytes(world: PlanContext) -> Iterator[GuardrailResult]:
    is_assumed = any(facts.kind == "kafka" for facts in world.inputs.values())
    basis = f", with {ASSUMED_RECORD_BYTES} assumed for each record of a topic" if is_assumed else ""
    yield _check_cap("bytes", world.estimate.bytes, world.limits.max_bytes, f" bytes{basis}")


def _check_cost(world: PlanContext) -> Iterator[GuardrailResult]:
    most = world.limits.max_usd
    if most is not None and Decimal(world.core_hour_usd) <= 0:
        found = f"limits.max_usd is {most} and price.core_hour_usd is {world.core_hour_usd}, so no run could reach it"
        look = ("set price.core_hour_usd in errata.yaml, or remove limits.max_usd",)
        yield GuardrailResult("cost", "refuse", found, look=look)
        return
    yield _check_cap("cost", Decimal(world.estimate.usd), None if most is None else Decimal(most), " USD")


def _check_dirty_tree(world: PlanContext) -> Iterator[GuardrailResult]:
    if not world.kind.runs_transform:
        yield GuardrailResult("dirty-tree", "ok", "no code of the project runs")
    elif world.code.git_dirty:
        text = "uncommitted changes: the zip that runs is kept, but no commit has this code"
        yield GuardrailResult("dirty-tree", "warn", text)
    elif world.code.git_commit:
        yield GuardrailResult("dirty-tree", "ok", f"git {world.code.git_commit[:7]}")
    else:
        yield GuardrailResult("dirty-tree", "ok", "not a git work tree; the zip that runs is kept")


def _check_policy(world: PlanContext) -> Iterator[GuardrailResult]:
    """Check what the product's policy demands; a run without a transform has no code to try."""
    demands = [one for one in world.product.policy.require if one != "dry_run" or world.kind.runs_transform]
    unmet = {one: text for one in demands if (text := _UNMET[one](world))}
    for one, text in unmet.items():
        tries = f"errata try {world.product.name} {world.partitions[0]}"
        look = tries if one == "dry_run" else "add --canary 1, or a list of partitions"
        yield GuardrailResult("policy", "refuse", f"policy.require {one}: {text}", look=(look,))
    if demands and not unmet:
        yield GuardrailResult("policy", "ok", f"{' and '.join(demands)}, as the product's policy demands")


def _find_trial_problem(world: PlanContext) -> str:
    if world.trial is None:
        return "no trial of this code and config is on record"
    if world.trial.is_blocked:
        return f"the last trial of this code, by {world.trial.person} at {world.trial.at}, was blocked by the gate"
    return ""


def _find_canary_problem(world: PlanContext) -> str:
    return "" if world.request.canary not in (0, "0") else "the plan has no canary"


_UNMET: dict[str, Callable[[PlanContext], str]] = {"dry_run": _find_trial_problem, "canary": _find_canary_problem}


def _check_schema(world: PlanContext) -> Iterator[GuardrailResult]:
    problems = (
        *find_schema_problems(world.product, world.target, world.inputs, world.partitions),
        *find_side_table_problems(world.product, world.target, world.beside),
    )
    for problem in problems:
        look = ("errata check names the file and the line", "correct it there, or the table, and plan again")
        yield GuardrailResult("schema", "refuse", problem, final=True, look=look)
    if problems:
        return
    new = find_new_columns(world.product.target, world.target)
    told = f"; new with the publication: {', '.join(f'{c.name} {c.type}' for c in new)}" if new else ""
    yield GuardrailResult("schema", "ok", f"partition spec, key and lineage columns agree with the product{told}")
    if world.target.format_version >= ROW_LINEAGE and not is_side_table_mode(world.product.publish):
        told = "rows that are published or rolled back get a new _row_id and _last_updated_sequence_number"
        yield GuardrailResult("schema", "ok", f"format v{world.target.format_version}: {told}")
    if any(override.rule == "schema" for override in world.request.overrides):
        yield GuardrailResult(
            "schema", "warn", "columns that the transform leaves out are written as NULL, where they may be"
        )


def _check_rewrite_rule(world: PlanContext) -> Iterator[GuardrailResult]:
    if not is_side_table_mode(world.product.publish):
        yield from check_rewrite(world.product.target, world.target)


def _check_live_retries(world: PlanContext) -> Iterator[GuardrailResult]:
    text = world.target.properties.get("commit.retry.num-retries", "4")
    if text.isdigit() and int(text) < _FEW_RETRIES:
        yield GuardrailResult(
            "live-retries",
            "warn",
            f"live writers retry a commit {text} times; each of our commits can cost them one. Consider ALTER TABLE "
            f"{world.target.table} SET TBLPROPERTIES ('commit.retry.num-retries'='30')",
        )
    else:
        yield GuardrailResult("live-retries", "ok", f"live writers retry a commit {text} times")


_RULES: dict[str, Callable[[PlanContext], Iterator[GuardrailResult]]] = {
    "kind": check_kind,
    "range": _check_range,
    "recent": _check_recent,
    "locked": _check_locked,
    "source-missing": check_source_missing,
    "source-retention": check_source_retention,
    RULE: check_change_logs,
    PRIVACY: check_privacy,
    "empty": check_empty,
    "waiting": check_waiting,
    "overlap": _check_overlap,
    "ledger": _check_ledger,
    "append": _check_append,
    "reference": check_references,
    RULE_VERSIONS: check_rule_versions,
    "restore": _check_restore_rule,
    "rows": _check_rows,
    "bytes": _check_bytes,
    "cost": _check_cost,
    STREAMS: check_streaming_readers,
    CONSUMERS: check_consumers,
    "dirty-tree": _check_dirty_tree,
    "policy": _check_policy,
    "schema": _check_schema,
    "rewrite": _check_rewrite_rule,
    "live-retries": _check_live_retries,
}
