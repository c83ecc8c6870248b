"""`errata erase where` and `errata erase prove`: what can still show a subject, and the record that nothing can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from errata.approval.permissions import require_role
from errata.canonical import to_plain
from errata.commands.upkeep.erased_places import Search
from errata.errors import StateRefused, UsageError
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.product.erasure_place import Place
from errata.text.escape import require_reason
from errata.text.numbers import plural
from errata.views import ErasureProofView, ErasureWhereView
from errata.workspace import Workspace

PROVEN = "erasure.proven"
"""Audit action: nothing that Errata can look at shows these subjects any more."""


def find_erased_subjects(workspace: Workspace, actor: Actor, subjects: Collection[str]) -> ErasureWhereView:
    """List every place that can still show these subjects, with the day on which it ends. Changes nothing."""
    require_role(workspace, actor, (Role.APPROVER,), "erase where")
    asked = _require_ids(subjects)
    places = Search(workspace, _with_hashes(workspace, asked)).find_places()
    listed = _count_listed(workspace, asked)
    return ErasureWhereView(len(asked), listed, places, workspace.now().date().isoformat())


def prove_erasure(
    workspace: Workspace, actor: Actor, subjects: Collection[str], reason: str, leave: Mapping[str, str]
) -> ErasureProofView:
    """Record that no place shows these subjects any more; refuses with the list of those that do.

    ``leave`` names places that stay, each with why: those that nobody can look at, or that the law keeps.
    """
    workspace.ledger.create()
    require_role(workspace, actor, (Role.APPROVER,), "erase prove")
    require_reason("a proof", reason, "errata erase prove --from FILE")
    asked = _require_ids(subjects)
    view = find_erased_subjects(workspace, actor, asked)
    if view.listed < len(asked):
        raise StateRefused(
            f"a proof was refused; the list has {view.listed} of {plural(len(asked), 'subject')}, and rows of the "
            "others could come back",
            state="nothing was recorded",
            hint='errata erase add --from FILE --reason "…"',
        )
    if unknown := sorted(set(leave) - {place.label for place in view.places}):
        raise UsageError(
            f"--leave {unknown[0]} was refused; expected KIND:PLACE, as errata erase where lists them",
            state="nothing was recorded",
            hint=f'--leave "{view.places[0].label}=WHY"' if view.places else "no place is left: prove without --leave",
        )
    left = [place for place in view.places if place.label not in leave]
    if left:
        raise _refuse(workspace, actor, view, left)
    kinds = Counter(place.kind for place in view.places)
    body = {
        "list": workspace.engines.erased.table, "watermark": workspace.engines.erased.watermark(),
        "subjects": len(asked), "reason": reason, "left": dict(sorted(leave.items())), "kinds": dict(kinds),
    }  # fmt: skip
    entry = workspace.ledger.audit.note(None, actor, PROVEN, body)
    return ErasureProofView(len(asked), view.day, dict(sorted(leave.items())), entry.seq)


def _refuse(workspace: Workspace, actor: Actor, view: ErasureWhereView, left: Collection[Place]) -> StateRefused:
    days = [place.until for place in left if place.until]
    last = f"; the last day among them is {max(days)}" if days else ""
    told = ", ".join(f"{place.label} (until {place.until or 'somebody ends it'})" for place in left)
    error = StateRefused(
        f"a proof was refused; {plural(len(left), 'place')} can still show the subjects: {told}{last}",
        state="nothing was recorded",
        hint="errata erase where --from FILE says what ends each; a place that has to stay: --leave PLACE=WHY",
        places=[to_plain(place) for place in view.places],
    )
    workspace.ledger.audit.record_refusal(None, actor, "erase prove", error.message)
    return error


def _require_ids(subjects: Collection[str]) -> tuple[str, ...]:
    asked = tuple(sorted({one for one in subjects if one.strip()}))
    if not asked:
        raise UsageError("no id was given; expected one id a line", state="nothing was changed")
    return asked


def _with_hashes(workspace: Workspace, asked: Collection[str]) -> frozenset[str]:
    hashed = workspace.engines.erased.hasher()
    return frozenset(asked) | {hashed(one) for one in asked}


def _count_listed(workspace: Workspace, asked: Collection[str]) -> int:
    hashed, known = workspace.engines.erased.hasher(), workspace.engines.erased.read_listed()
    return sum(hashed(one) in known for one in asked)
