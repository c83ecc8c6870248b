"""Models of dbt as the last steps of a campaign: sealed by digests, built with the same interval every time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from errata.commands.campaign.member_state import DRIFTED
from errata.errors import Drifted, EngineError, NotFound, UsageError
from errata.ledger import CampaignRecord
from errata.model.audit import Actor
from errata.model.calendar_math import first_second
from errata.model.campaign.campaign_manifest import DbtStep, Member
from errata.model.graph.dbt_graph import DbtGraph, DbtNode
from errata.model.partition import NULL, to_ordinal
from errata.model.product import DbtSettings
from errata.workspace import Workspace

_STATE = "nothing was planned; no table was touched"
_STRATEGIES = ("microbatch", "insert_overwrite")
_NOT_STORED = ("view", "ephemeral")


def plan_dbt_steps(workspace: Workspace, members: Sequence[Member]) -> tuple[tuple[DbtStep, ...], tuple[str, ...]]:
    """Steps for the models that the project builds in campaigns and that read a member, and notes about them."""
    settings = workspace.project.dbt
    manifest = workspace.engines.dbt() if settings is not None and settings.build else None
    if settings is None or manifest is None:
        return (), ()
    tables = {one.manifest.target.table: one for one in members}
    owners = {node.unique_id: table for table in tables for node in manifest.graph.find_tables(table)}
    steps = []
    for name in settings.build:
        node = _find_model(manifest.graph, name)
        read = [tables[table] for table in dict.fromkeys(_iterate_reads(manifest.graph, node, owners, node.name))]
        if read:
            _refuse_unfit(workspace, node)
            steps.append(_seal_step(workspace, settings, node, read))
    return tuple(steps), tuple(
        f"dbt builds {step.select} last; Errata seals and runs it, and cannot undo it" for step in steps
    )


def _find_model(graph: DbtGraph, name: str) -> DbtNode:
    found = [node for node in graph.nodes.values() if node.kind == "model" and node.name == name]
    if len(found) != 1:
        raise NotFound(
            f"dbt.build names {name}; expected one model of that name in dbt's manifest, found {len(found)}",
            state=_STATE,
            hint="correct dbt.build in errata.yaml, or write the manifest again: dbt parse",
        )
    return found[0]


def _iterate_reads(graph: DbtGraph, node: DbtNode, owners: Mapping[str, str], name: str) -> Iterator[str]:
    """Tables of members that a model reads, also through models that are not stored."""
    for key in node.reads:
        above = graph.nodes[key]
        if key in owners:
            yield owners[key]
            continue
        found = list(_iterate_reads(graph, above, owners, name))
        stored = str((above.data.get("config") or {}).get("materialized") or "")
        if found and stored not in _NOT_STORED:
            raise UsageError(
                f"{name} cannot be a step; it reads {found[0]} through {above.name}, a {stored} that the campaign does "
                "not build",
                state=_STATE,
                hint=f"remove {name} from dbt.build in errata.yaml, or make {above.name} a view",
            )
        yield from found


def _refuse_unfit(workspace: Workspace, node: DbtNode) -> None:
    """Refuse a model that would add rows twice when it is built again, or that a product reads."""
    config = node.data.get("config") or {}
    strategy = str(config.get("incremental_strategy") or "")
    if config.get("materialized") != "incremental" or strategy not in _STRATEGIES or node.event_time is None:
        found = f"{config.get('materialized')}, strategy {strategy or 'none'}, event_time {node.event_time or 'none'}"
        raise UsageError(
            f"{node.name} cannot be a step; expected an incremental model with {' or '.join(_STRATEGIES)} and an "
            f"event_time, which can be built again for the same interval; found {found}",
            state=_STATE,
        )
    for product in workspace.project.products.values():
        for source in product.inputs:
            names = tuple((source.table or "").casefold().split("."))
            if names[-2:] == node.relation[1:]:
                raise UsageError(
                    f"{node.name} cannot be a step; input {source.name} of {product.name} reads it, and nothing may "
                    "follow a model of dbt",
                    state=_STATE,
                )


def _seal_step(workspace: Workspace, settings: DbtSettings, node: DbtNode, read: Sequence[Member]) -> DbtStep:
    starts, ends = [], []
    for member in read:
        grain = member.manifest.target.grain
        if not grain.is_time or NULL in member.manifest.partitions:
            raise UsageError(
                f"{node.name} cannot be a step; {member.product} has partitions that are no times, so no interval of "
                "event_time follows",
                state=_STATE,
            )
        numbers = [to_ordinal(grain, name) for name in member.manifest.partitions]
        starts.append(first_second(grain, min(numbers)))
        ends.append(first_second(grain, max(numbers) + 1))
    runner = workspace.engines.dbt_runner
    if runner is None:
        raise UsageError("dbt.build needs dbt.project in errata.yaml", state=_STATE)
    return DbtStep(
        model=node.unique_id,
        select=node.name,
        relation=str(node.data.get("relation_name") or node.name),
        strategy=str((node.data.get("config") or {}).get("incremental_strategy")),
        after=tuple(member.product for member in read),
        start=_to_instant(min(starts)),
        end=_to_instant(max(ends)),
        digests=runner.seal(settings.command, node.name),
        command=settings.command,
    )


def _to_instant(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def build_step(workspace: Workspace, actor: Actor, record: CampaignRecord, step: DbtStep) -> None:
    """Build a model of dbt, if it is still what was approved, and record the results."""
    runner = workspace.engines.dbt_runner
    if runner is None:
        raise UsageError(f"{step.select} was not built; errata.yaml no longer names dbt.project", state="nothing ran")
    found = runner.seal(step.command, step.select)
    changed = [name for name, digest in step.digests.items() if found.get(name) != digest]
    if changed:
        told = f"dbt's {' and '.join(changed)} changed since the campaign was planned"
        workspace.ledger.audit.note(record.campaign_id, actor, DRIFTED, {"member": step.select, "told": told})
        raise Drifted(
            f"{step.select} of {record.campaign_id} needs a new approval: {told}",
            state="dbt was not started",
            hint=f"put it back as it was, then: errata run {record.campaign_id}",
        )
    workspace.narrate(f"{step.select}: dbt builds {step.start} … {step.end}")
    done = runner.build(step.command, step.select, step.start, step.end)
    body = {"start": step.start, "end": step.end, "said": done.said}
    outcome = "built" if done.is_built else "failed"
    content = done.results or done.said.encode()
    workspace.ledger.campaigns.record_step(record.campaign_id, step.select, outcome, content, actor, body)
    if not done.is_built:
        raise EngineError(
            f"dbt could not build {step.select}: {done.said}",
            state="what dbt built of it stays; repeating builds the same interval",
            hint=f"correct the cause, then: errata run {record.campaign_id}",
        )
