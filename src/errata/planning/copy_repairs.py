"""Plan a repair of copies: no input, no rule of the gate, no chunk; and the guardrail ``kind`` for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from errata.model.product import Product, Publish
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.text.numbers import plural

NOTHING_RUNS = "none: copies get what is accepted"


def to_repair_product(product: Product) -> Product:
    """The product without everything that computes or judges rows."""
    return replace(
        product, target=replace(product.target, add_columns={}), inputs=(), checks=(), reconcile=(), compare=(),
        control=(), row_limits=(), distribution=(), publish=Publish(), prove_determinism=0,
    )  # fmt: skip


def check_repairs(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse a repair of nothing; otherwise name what is replaced."""
    if not world.repairs:
        text = "no copy differs from what is accepted in these partitions: there is nothing to repair"
        look = (f"errata copies check {world.product.name}",)
        yield GuardrailResult("kind", "refuse", text, final=True, look=look)
    for one in world.repairs:
        told = f"{plural(one.copy_rows, 'row')} there now, {plural(one.lake_rows, 'row')} accepted"
        yield GuardrailResult("kind", "ok", f"{one.copy}: replaces {world.folded(one.partitions)} ({told})")
