"""Standing approvals of a project: the digest of a whole product, whether one counts now, and what suspended it.

What suspends one is read from the records of the runs under it, so that no crash can lose it: a verdict with any
finding, a conflict, or a rollback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from errata.approval.standing_scope import (
    ROWS,
    PlannedRun,
    StandingEvent,
    StandingScope,
    count_decisions,
    explain_uncovered,
    explain_used_up,
)
from errata.approval.voters import build_voters
from errata.canonical import digest_of, to_plain
from errata.ledger import RunRecord, StandingRecord
from errata.ledger.store.standing import Cover
from errata.model.approval import ApprovalRecord, ApprovalRules, QuorumStatus
from errata.model.manifest import Code, Manifest, find_new_partitions
from errata.model.partition import parse_list
from errata.model.product import Comparison, Product, Project
from errata.model.run import is_clean
from errata.text.numbers import format_moment
from errata.workspace import Workspace

RULE_PREFIX = "standing approval: "


@dataclass(frozen=True, slots=True)
class StandingState:
    """A standing approval as it counts now; ``why`` says why it does not, and is empty if it does."""

    record: StandingRecord
    scope: StandingScope
    quorum: QuorumStatus
    events: tuple[StandingEvent, ...]
    why: str


def digest_product(project: Project, product: Product, code: Code, tables: Mapping[str, str]) -> str:
    """Digest of everything that decides what a run of the product does, apart from data.

    ``tables`` maps every table to its uuid: a table that was dropped and made again is another one.
    """
    told = to_plain(product)
    for name in ("path", "lines", "description"):
        told.pop(name, None)
    sealed = [code.call, code.version, code.zip_digest, code.config_digest, code.lock_digest, code.jars]
    runtime = [project.spark_conf, project.limits, project.name, code.errata_version]
    return digest_of([told, sealed, runtime, dict(tables)])


def read_tables(workspace: Workspace, product: Product) -> dict[str, str]:
    """Uuid of the target and of every input table."""
    names = {product.target.table, *(source.table for source in product.inputs if source.table)}
    return {name: workspace.engines.tables.describe(name).table_uuid for name in sorted(names)}


def list_manifest_tables(manifest: Manifest) -> dict[str, str]:
    """Uuid of the target and of every input table, as a run pinned them."""
    found = {pin.location: pin.table_uuid or "" for pin in manifest.inputs if pin.kind == "table"}
    return dict(sorted((found | {manifest.target.table: manifest.target.table_uuid}).items()))


def read_product_digest(workspace: Workspace, product: Product) -> str:
    """Digest of a product as it is now."""
    code, _ = workspace.engines.code(product)
    return digest_product(workspace.project, product, code, read_tables(workspace, product))


def add_limits(product: Product, scope: StandingScope) -> Product:
    """The product with a comparison for each limit of change, so that the gate measures and judges it.

    A covered run is small and goes as one wave: its limits are those of the run, and no person releases a first wave.
    """
    rules = tuple(
        Comparison(
            name=f"{RULE_PREFIX}{metric}", metric="count(*)" if metric == ROWS else metric, warn=limit, block=None
        )
        for metric, limit in scope.changes.items()
    )
    return replace(product, compare=(*product.compare, *rules), publish=replace(product.publish, waves=None))


def evaluate_standing(workspace: Workspace, record: StandingRecord, requester: str) -> StandingState:
    """Whether a standing approval counts now, with current roles; ``requester`` is who asks for the run."""
    scope, product = StandingScope.parse(record.subject), workspace.project.products.get(record.product)
    events = tuple(sorted(_iterate_events(workspace, record), key=lambda one: one.at))
    owner = product.owner if product else ""
    rules = product.approval if product else ApprovalRules()
    voters = build_voters(workspace.project, owner, single_user=workspace.project.single_user)
    given = [
        ApprovalRecord("", one.person, one.decision, one.digest, one.note, one.at, one.audit_seq)
        for one in record.decisions
    ]
    quorum = count_decisions(
        scope, rules, voters, given, events,
        requester=workspace.project.find_case_variant(requester) or requester,
        now=datetime.fromisoformat(workspace.ledger.now()),
    )  # fmt: skip
    why = "" if quorum.is_met else _explain(quorum, events)
    return StandingState(record, scope, quorum, events, why)


def _explain(quorum: QuorumStatus, events: tuple[StandingEvent, ...]) -> str:
    if events and not quorum.counted:
        return events[-1].why
    return "; ".join(quorum.missing)


def _iterate_events(workspace: Workspace, record: StandingRecord) -> Iterator[StandingEvent]:
    """What revoked or suspended it, from the decisions and from the records of its runs."""
    for decision in record.decisions:
        if decision.decision == "revoked":
            note = f": {decision.note}" if decision.note else ""
            yield StandingEvent(decision.at, f"{decision.person} revoked it at {format_moment(decision.at)} UTC{note}")
    ledger = workspace.ledger
    for use in record.uses:
        for verdict in ledger.candidates.verdicts(use.run_id):
            if not verdict.passed or not is_clean(verdict.checks):
                yield StandingEvent(verdict.at, f"it is suspended: the gate found something in {use.run_id}")
        for publication in ledger.publications.list(use.run_id):
            if publication.kind == "rollback":
                yield StandingEvent(publication.intended_at, f"it is suspended: {use.run_id} was rolled back")
        for entry in ledger.audit.readable_entries(use.run_id, actions=("refused",)):
            if entry.body.get("conflict"):
                yield StandingEvent(entry.at, f"it is suspended: {use.run_id} conflicted with another writer")


def find_current_standing(workspace: Workspace, product: str, requester: str) -> StandingState | None:
    """The newest standing approval of a product that counts, or else the newest one, or None."""
    states = [evaluate_standing(workspace, one, requester) for one in workspace.ledger.standing.list(product)]
    return next((one for one in states if not one.why), states[0] if states else None)


def explain_void_standing(workspace: Workspace, run: RunRecord, manifest: Manifest, record: StandingRecord) -> str:
    """Why a standing approval does not cover a sealed run now; empty if it does."""
    state = evaluate_standing(workspace, record, run.planned_by)
    product = workspace.project.products.get(run.product)
    if state.why:
        return state.why
    if product is None:
        return f"the project no longer has {run.product}"
    # at sealing time, because a partition ages while its run works
    sealed_at = next(one.at for one in record.uses if one.run_id == run.run_id)
    planned = build_planned_run(workspace.project, product, manifest)
    return explain_uncovered(state.scope, planned, datetime.fromisoformat(sealed_at))


def build_planned_run(project: Project, product: Product, manifest: Manifest) -> PlannedRun:
    """A sealed run as the rule looks at it."""
    grain = manifest.target.grain
    locked = {name for text in product.protect.locked for name in parse_list(grain, text)}
    return PlannedRun(
        product_digest=digest_product(project, product, manifest.code, list_manifest_tables(manifest)),
        grain=grain,
        partitions=manifest.partitions,
        new_partitions=find_new_partitions(manifest),
        overrides=tuple(one.rule for one in manifest.overrides),
        locked=frozenset(locked & set(manifest.partitions)),
        kind=manifest.kind,
        changes={
            rule.name.removeprefix(RULE_PREFIX): rule.warn or ""
            for rule in manifest.compare
            if rule.name.startswith(RULE_PREFIX)
        },
    )


def build_cover(workspace: Workspace, product: Product, manifest: Manifest) -> Cover:
    """The rule that the ledger applies in the transaction that seals a run."""
    planned = build_planned_run(workspace.project, product, manifest)

    def cover(record: StandingRecord, runs: int, partitions: int, at: str) -> str:
        scope = StandingScope.parse(record.subject)
        return (
            explain_uncovered(scope, planned, datetime.fromisoformat(at))
            or explain_used_up(scope, runs, partitions, len(planned.partitions))
        )  # fmt: skip

    return cover


def is_standing_valid(workspace: Workspace, run: RunRecord, manifest: Manifest) -> bool:
    """Whether a standing approval covers this run now."""
    used = workspace.ledger.standing.find_used(run.run_id)
    return used is not None and not explain_void_standing(workspace, run, manifest, used)
