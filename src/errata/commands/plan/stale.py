"""`errata plan --stale`: the partitions that have to be computed again, and no others."""

from __future__ import annotations

from collections.abc import Sequence

from errata.commands.look.stale import is_plannable, read_stale
from errata.errors import PlanRefused
from errata.model.partition import format_ranges
from errata.planning.request import resolve_scope
from errata.staleness.judgement import STALE, WAITING
from errata.staleness.products import JudgedProduct
from errata.workspace import Workspace

_SHOWN = 6


def find_stale_scope(
    workspace: Workspace,
    name: str,
    start: str | None = None,
    end: str | None = None,
    partitions: str | Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Stale partitions of a product, of all or of a range; refuses if there is nothing to compute again.

    A partition that is stale only because a product that it reads is stale would be stale again after its run.
    """
    product = workspace.product(name)
    scope = resolve_scope(product.target.grain, start, end, partitions)
    found = read_stale(workspace, name, scope)
    names = list_plannable(found)
    if names:
        return names
    raise _build_refusal(found)


def list_plannable(found: JudgedProduct) -> tuple[str, ...]:
    """Stale partitions that a run makes current."""
    return tuple(one.partition for one in found.judged if one.state == STALE and is_plannable(one))


def _build_refusal(found: JudgedProduct) -> PlanRefused:
    product, grain = found.product, found.product.target.grain
    behind = [one for one in found.judged if one.state == STALE]
    waiting = [one.partition for one in found.judged if one.state == WAITING]
    hint = f"errata stale {product.name}"
    if behind:
        parent = next(reason.parent for one in behind for reason in one.reasons if reason.parent)
        names = format_ranges(grain, [one.partition for one in behind], _SHOWN)
        told = f"{names} only follow from {parent}, which is stale itself"
        hint = f'correct it first: errata plan {parent} --stale --reason "…"'
    elif waiting:
        told = f"nothing is stale, and {format_ranges(grain, waiting, _SHOWN)} waits for inputs that are not complete"
    else:
        told = "nothing is stale: every partition follows from its inputs"
    return PlanRefused(f"plan --stale of {product.name} was refused; {told}", state="nothing was planned", hint=hint)
