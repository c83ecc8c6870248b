"""`errata plan --stale`: the partitions that have to be computed again, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.commands.look.stale import list_plannable, read_stale_with_parents
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
    judged = read_stale_with_parents(workspace, name, scope)
    names = list_plannable(judged[name])
    if names:
        return names
    raise _build_refusal(judged[name], judged)


def _build_refusal(found: JudgedProduct, judged: Mapping[str, JudgedProduct]) -> PlanRefused:
    product, grain = found.product, found.product.target.grain
    behind = [one for one in found.judged if one.state == STALE]
    waiting = [one.partition for one in found.judged if one.state == WAITING]
    hint = f"errata stale {product.name}"
    if behind:
        parent = next(reason.parent for one in behind for reason in one.reasons if reason.parent)
        names = format_ranges(grain, [one.partition for one in behind], _SHOWN)
        told = f"{names} only follow from {parent}, which is stale itself"
        first = _find_first_stale(parent, judged)
        again = f'correct it first, and what follows: errata plan {first} --stale --cascade --reason "…"'
        hint = again if first else f"errata stale {parent}"
    elif waiting:
        told = f"nothing is stale, and {format_ranges(grain, waiting, _SHOWN)} waits for inputs that are not complete"
    else:
        told = "nothing is stale: every partition follows from its inputs"
    message = f"plan --stale of {product.name} was refused; {told}"
    nothing_stale = not behind and not waiting
    return PlanRefused(message, state="nothing was planned", hint=hint, nothing_stale=nothing_stale)


def _find_first_stale(name: str, judged: Mapping[str, JudgedProduct]) -> str | None:
    """Of a stale product and those above it, the first with a partition that a run makes current; None if all wait."""
    if list_plannable(judged[name]):
        return name
    above = dict.fromkeys(reason.parent for one in judged[name].judged for reason in one.reasons if reason.parent)
    return next((found for parent in above if (found := _find_first_stale(parent, judged))), None)
