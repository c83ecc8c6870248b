"""Kinds of runs in a plan: the products that fit a kind, the plan's content for it, and the guardrail ``kind``. Pure.

A run that attests or reconciles changes nothing. So the rules that protect the table from changes do not apply to it,
and its plan holds only the rules of the gate that its question needs: an attestation compares rows and has none, a
reconciliation has the rules on main as it is, but none that compares with a new output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from errata.errors import PlanRefused
from errata.gate.rules.rule_check import list_rule_inputs
from errata.model.kind import ATTEST, BOOTSTRAP, MIGRATE, RECONCILE, RECONSTRUCT, REPLAY
from errata.model.product import Input, Product, Publish
from errata.model.recording.declaration import name_recording
from errata.model.side_tables import is_side_table_mode
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.planning.request import Request
from errata.planning.schema import find_new_columns
from errata.text.numbers import plural

PROTECTING_RULES = frozenset(
    {"recent", "locked", "overlap", "append", "streaming-readers", "policy", "rewrite", "live-retries"}
)
"""Guardrails that protect the table, its readers and its writers from a change."""
NOTHING_RUNS = "none: main is judged as it is"
NOTHING_REPAIRED = "none: copies get what is accepted"
_AS_RECORDED = "as_recorded"
_SHOWN = 5


def refuse_unfit_kind(request: Request, product: Product) -> None:
    """Refuse a kind that this product cannot have, whatever its tables hold."""
    if request.kind == ATTEST and not product.repeatable:
        raise _kind_error(
            request,
            f"{product.name} declares determinism.repeatable: false, so computing it again proves nothing about main",
            f"judge main by the product's rules: errata plan {product.name} --kind reconcile …",
        )
    if request.kind == ATTEST and is_side_table_mode(product.publish):
        raise _kind_error(
            request,
            f"publish.mode {product.publish.mode} keeps corrections beside {product.target.table}, so main need not "
            "equal what the transform computes",
            f"compare without a run: errata try {product.name} PARTITION",
        )
    if request.kind == RECONCILE and not (product.reconcile or product.checks or product.control):
        raise _kind_error(
            request,
            f"{product.name} has no reconcile:, checks: or control: rules to judge main by",
            f"add a rule to {product.path or 'the product file'}, then plan again",
        )
    if request.kind == MIGRATE and len(list_sources(product)) != 1:
        names = ", ".join(source.name for source in list_sources(product)) or "none"
        raise _kind_error(
            request,
            "expected exactly one input that is another table or a recording, with a partition column, whose rows the "
            f"target takes over; found {names}",
            f'to compute the target from these inputs: errata plan {product.name} … --kind backfill --reason "…"',
        )


def list_sources(product: Product) -> tuple[Input, ...]:
    """Inputs that a migration could take rows over from: other tables and recordings, read by partition."""
    return tuple(
        source
        for source in product.inputs
        if (source.table or source.recording)
        and source.partition
        and not source.own
        and source.table != product.target.table
    )


def to_attest_product(product: Product) -> Product:
    """The product without rules of the gate, and published as rows of the table itself: what main is compared with."""
    publish = Publish(mode="merge", merge=product.publish.merge) if product.publish.merge else Publish()
    return replace(product, checks=(), reconcile=(), compare=(), control=(), row_limits=(), publish=publish)


def to_reconcile_product(product: Product) -> Product:
    """The product with the rules on main as it is, and with the inputs that these rules read."""
    judged = replace(
        product, target=replace(product.target, add_columns={}), compare=(), row_limits=(), publish=Publish(),
        prove_determinism=0, reconstruct=None,
    )  # fmt: skip
    used = list_rule_inputs(judged)
    return replace(judged, inputs=tuple(source for source in product.inputs if source.name in used))


def to_repair_product(product: Product) -> Product:
    """The product without everything that computes or judges rows."""
    return replace(
        product, target=replace(product.target, add_columns={}), inputs=(), checks=(), reconcile=(), compare=(),
        control=(), row_limits=(), distribution=(), publish=Publish(), prove_determinism=0, reconstruct=None,
    )  # fmt: skip


def check_kind(world: PlanContext) -> Iterator[GuardrailResult]:
    """Check what the kind promises against the tables; kinds that only name a correction promise nothing more."""
    if world.kind.only_copies:
        yield from _check_repairs(world)
    elif not world.kind.changes_table:
        yield from _check_checking_kind(world)
    elif world.request.kind == BOOTSTRAP:
        yield _check_bootstrap(world)
    elif world.request.kind == MIGRATE:
        yield _check_migration(world)
    elif world.request.kind == RECONSTRUCT:
        yield _check_references(world)
    elif world.request.kind == REPLAY:
        yield _check_replay(world)


def _check_checking_kind(world: PlanContext) -> Iterator[GuardrailResult]:
    kind, table = world.request.kind, world.target.table
    if world.target.base_snapshot_id is None:
        text = f"{table} has no snapshot, so there is nothing to {kind}"
        yield GuardrailResult("kind", "refuse", text, final=True, look=(_correct_first(world),))
        return
    new = find_new_columns(world.product.target, world.target)
    if kind == ATTEST and new:
        text = (
            f"{table} has no column {', '.join(one.name for one in new)}, which the product adds: main cannot equal it"
        )
        yield GuardrailResult("kind", "refuse", text, final=True, look=(_correct_first(world),))
        return
    text = "computes the partitions again and compares them with main" if kind == ATTEST else "judges main as it is"
    yield GuardrailResult("kind", "ok", f"{kind} {text}; it changes nothing and needs no approval")


def _check_repairs(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse a repair of nothing; otherwise name what is replaced."""
    if not world.repairs:
        text = "there is nothing to repair: no copy differs from what is accepted in these partitions"
        text += "; what only a baseline covers has nothing accepted to go back to"
        look = (f"errata copies check {world.product.name}",)
        yield GuardrailResult("kind", "refuse", text, final=True, look=look)
    for one in world.repairs:
        told = f"{plural(one.copy_rows, 'row')} there now, {plural(one.lake_rows, 'row')} accepted"
        yield GuardrailResult("kind", "ok", f"{one.copy}: replaces {world.folded(one.partitions)} ({told})")


def _correct_first(world: PlanContext) -> str:
    return f"publish a correction first: errata plan {world.product.name} …"


def _check_bootstrap(world: PlanContext) -> GuardrailResult:
    full = [name for name in world.partitions if world.target.expected.get(name) or name in world.target.partitions]
    if not full:
        return GuardrailResult("kind", "ok", f"bootstrap: all {len(world.partitions):,} partitions are empty")
    text = (
        f"bootstrap fills empty partitions; {len(full):,} of {len(world.partitions):,} hold data: {world.folded(full)}"
    )
    look = ("to replace what they hold, plan it as a correction: --kind restate",)
    return GuardrailResult("kind", "refuse", text, final=True, look=look, leave_out=frozenset(full))


def _check_migration(world: PlanContext) -> GuardrailResult:
    (source,) = list_sources(world.product)
    where = source.table or name_recording(source.recording)
    schemas = [source.columns] if source.recording else world.inputs[source.name].schemas
    found = {name: kind for schema in schemas for name, kind in schema.items()}
    wanted = {
        column.name: column.type for column in world.target.columns if column.name not in world.product.lineage_columns
    }
    wrong = [f"{name} is missing there" for name in wanted if name not in found]
    wrong += [
        f"{name} is {found[name]} there and {kind} here"
        for name, kind in wanted.items()
        if found.get(name, kind) != kind
    ]
    if not wrong:
        return GuardrailResult("kind", "ok", f"migrate: the gate compares every row with {where}")
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    text = f"migrate compares every row with {where}, and cannot: {'; '.join(wrong[:_SHOWN])}{more}"
    look = ("an override leaves the comparison out; rules under reconcile: can take its place",)
    return GuardrailResult("kind", "refuse", text, look=look)


def _check_references(world: PlanContext) -> GuardrailResult:
    read = [source for source in world.product.inputs if source.reference]
    wrong = [f"{source.name} is read {source.reference}" for source in read if source.reference != _AS_RECORDED]
    if wrong:
        text = f"reconstruct computes what was known then; expected reference: {_AS_RECORDED}, but {', '.join(wrong)}"
        look = (
            f"set it in {world.product.path or 'the product file'}, or compute with what is known now: --kind restate",
        )
        return GuardrailResult("kind", "refuse", text, look=look)
    told = f"{', '.join(one.name for one in read)} as recorded then" if read else "no reference data is read"
    if rules := world.product.reconstruct:
        names = ", ".join(f"{rule.name} {rule.version} ({rule.source})" for rule in rules.rules)
        told = f"missing events by {names}; recorded ones stay as they are; {told}"
    return GuardrailResult("kind", "ok", f"reconstruct: {told}")


def _check_replay(world: PlanContext) -> GuardrailResult:
    aside = [one.rule for one in world.request.overrides if one.rule in _COMPLETENESS]
    if aside:
        text = f"replay reads every old row again; an override of {', '.join(aside)} would leave some out"
        look = ("to compute what is still there, plan it as a correction: --kind restate",)
        return GuardrailResult("kind", "refuse", text, final=True, look=look)
    return GuardrailResult("kind", "ok", "replay: transforms and lineage see mode REPLAY; no input may be missing")


_COMPLETENESS = ("source-missing", "source-retention", "empty")


def _kind_error(request: Request, why: str, hint: str) -> PlanRefused:
    return PlanRefused(
        f"kind {request.kind} was refused for {request.product}: {why}", state="nothing was planned", hint=hint
    )
