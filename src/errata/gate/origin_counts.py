"""Events of a run by origin and rule, beside those that were there before and those of the run it supersedes.

Reads what the gate measured from the ledger, no rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from errata.gate.measure.origins import ORIGINS, RECORDED_ROWS, rule_measure
from errata.model.manifest import Manifest
from errata.model.product.reconstruction import RECORDED, Reconstruction
from errata.ports.measure import CANDIDATE, PRIOR
from errata.views.report import OriginCount
from errata.workspace import Workspace


def read_origin_counts(
    workspace: Workspace, run_id: str, manifest: Manifest, partitions: Collection[str]
) -> tuple[OriginCount, ...]:
    """Counts over these partitions, in order of precedence; empty if the run rebuilds no events."""
    rules = manifest.reconstruct
    if rules is None:
        return ()
    now, before = (_add_up(workspace, run_id, scope, partitions) for scope in (CANDIDATE, PRIOR))
    older, earlier = _find_superseded(workspace, manifest, partitions)
    places = {RECORDED_ROWS: (RECORDED, None, None, None), **_list_places(older), **_list_places(rules)}
    return tuple(
        OriginCount(
            *places[name],
            rows=now.get(name, 0),
            before=before.get(name, 0) if before else None,
            superseded=earlier.get(name, 0) if older is not None else None,
        )
        for name in sorted(places, key=lambda name: _rank(name, rules))
    )


def _list_places(rules: Reconstruction | None) -> dict[str, tuple[str, str | None, str | None, str | None]]:
    found = rules.rules if rules else ()
    return {rule_measure(rule): (rule.source, rule.name, rule.version, rule.confidence) for rule in found}


def _rank(name: str, rules: Reconstruction) -> tuple[int, str]:
    """Recorded events first, then the rules in order; a rule that only the superseded run has comes last."""
    order = [RECORDED_ROWS, *map(rule_measure, rules.rules)]
    return (order.index(name) if name in order else len(order), name)


def _add_up(workspace: Workspace, run_id: str, scope: str, partitions: Collection[str]) -> Mapping[str, int]:
    """Sums of the newest measurements of each partition; waves are measured one by one."""
    values: dict[tuple[str, str], int] = {}
    for candidate in workspace.ledger.candidates.list(run_id):
        for one in workspace.ledger.candidates.measurements(run_id, candidate.n):
            is_count = one.name == RECORDED_ROWS or one.name.startswith(f"{ORIGINS}.rule ")
            if is_count and one.scope == scope and one.partition in partitions:
                values[one.partition, one.name] = int(one.value or 0)
    found: dict[str, int] = {}
    for (_, name), count in values.items():
        found[name] = found.get(name, 0) + count
    return found


def _find_superseded(
    workspace: Workspace, manifest: Manifest, partitions: Collection[str]
) -> tuple[Reconstruction | None, Mapping[str, int]]:
    """The rules and counts of the newest run in the chain of superseded ones whose output was measured."""
    older = manifest.supersedes
    while older is not None:
        earlier = workspace.ledger.runs.manifest(older)
        counts = _add_up(workspace, older, CANDIDATE, partitions)
        if counts and earlier.reconstruct is not None:
            return earlier.reconstruct, counts
        older = earlier.supersedes
    return None, {}
