"""`errata plan --explain`: the stages of a run in order, with what each reads and writes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from errata.model.kind import RECONCILE, find_kind
from errata.text.numbers import plural
from errata.views.plan import ExplainedPlanView, InputView, PlanView, StageView

_LEDGER = "the ledger"
_SIDE_TABLES = {"corrections": "rows in", "versions": "rows in", "view": "the view"}


def add_stages(view: PlanView) -> ExplainedPlanView:
    """The plan with the stages of its run."""
    told = {field.name: getattr(view, field.name) for field in fields(PlanView)}
    return ExplainedPlanView(**told, stages=tuple(_iterate_stages(view)))


def _iterate_stages(view: PlanView) -> Iterator[StageView]:
    run, changes = view.run_id, find_kind(view.kind).changes_table
    tags = [ref for ref in view.refs if ref.rpartition("_")[2].startswith(("base", "in"))]
    pins = ", ".join(tags) or "none"
    yield StageView("plan", "errata plan", ("table metadata", *_list_inputs(view)), (_LEDGER, f"tags: {pins}"))
    if changes:
        yield StageView("approve", f"errata approve {run}", (f"the plan {view.manifest_digest}",), (_LEDGER,))
    if view.repairs:
        yield _describe_repair(view)
        return
    if view.chunks:
        yield from _iterate_computation(view)
    yield _describe_validation(view)
    if not changes:
        return
    if view.manual:
        yield StageView("release", f"errata release {run}", ("the candidate, its verdict and diff",), (_LEDGER,))
    yield _describe_publication(view)


def _iterate_computation(view: PlanView) -> Iterator[StageView]:
    command, inputs = f"errata run {view.run_id}", _list_inputs(view)
    code = () if view.restored else (f"the sealed code {view.code.get('call', '')}",)
    if view.prove_determinism:
        samples = plural(min(view.prove_determinism, len(view.chunks)), "sample chunk")
        yield StageView("proof", command, (f"the inputs of {samples}, twice",), (_LEDGER,))
    branch = f"branch {_run_branch(view)} of {_find_staging(view)}"
    canary = [chunk for chunk in view.chunks if chunk.wave == 0]
    if canary:
        written = plural(sum(len(chunk.partitions) for chunk in canary), "partition")
        yield StageView("canary", command, (*inputs, *code), (f"{written} on {branch}", _LEDGER))
    rest = [chunk for chunk in view.chunks if chunk.wave != 0]
    aside = [f"quarantine of {source.name}" for source in view.inputs if source.row_rules]
    if rest:
        written = f"{plural(sum(len(chunk.partitions) for chunk in rest), 'partition')} in {plural(len(rest), 'chunk')}"
        yield StageView("compute", command, (*inputs, *code), (f"{written} on {branch}", *aside, _LEDGER))


def _describe_repair(view: PlanView) -> StageView:
    """Rows are compared before and after the one transaction of each copy, so that there is no gate of its own."""
    copies = tuple(f"{one['copy']}: {plural(len(one['partitions']), 'partition')}, one commit" for one in view.repairs)
    accepted = f"the accepted rows of {view.table}, and what the copies hold"
    return StageView("deliver", f"errata run {view.run_id}", (accepted,), (*copies, _LEDGER))


def _describe_validation(view: PlanView) -> StageView:
    # a run that changes nothing continues to its verdict by itself
    changes = find_kind(view.kind).changes_table
    command = f"errata {'validate' if changes else 'run'} {view.run_id}"
    inputs = _list_inputs(view) if view.gate.get("reconciliations") else ()
    main = f"{view.table} as planned"
    if view.kind == RECONCILE:
        return StageView("judge", command, (main, *_list_inputs(view)), (_LEDGER,))
    candidate = f"a candidate branch of {_find_staging(view)}, from the staged files"
    return StageView("judge", command, ("the candidate", main, *inputs), (candidate, _LEDGER))


def _describe_publication(view: PlanView) -> StageView:
    replaced = plural(len(view.partitions), "partition")
    beside = [f"{text} {view.publish[key]}" for key, text in _SIDE_TABLES.items() if view.publish.get(key)]
    in_place = view.publish.get("mode") not in ("corrections", "version", "swap_view")
    once = "one commit for each group" if "groups" in view.publish else "one commit"
    main = f"{view.table}: {replaced}, {once}; data files are {'rewritten' if view.rewrite else 'not copied'}"
    undo = f"an undo branch of {view.table}"
    writes = ([undo, main] if in_place else []) + beside
    return StageView("publish", f"errata publish {view.run_id}", ("main's files in scope",), (*writes, _LEDGER))


def _list_inputs(view: PlanView) -> tuple[str, ...]:
    return tuple(map(_describe_input, view.inputs))


def _describe_input(source: InputView) -> str:
    place = source.location or source.name
    pinned = f"@ {source.snapshot_id}" if source.snapshot_id else f"({plural(source.file_count, 'file')})"
    if source.log is not None:
        pinned = f"{source.log.reading} at log position {source.log.position} {pinned}"
    return f"{source.name}: {place} {pinned}"


def _run_branch(view: PlanView) -> str:
    return next((ref for ref in view.refs if ref.endswith(view.run_id)), "")


def _find_staging(view: PlanView) -> str:
    """The table that takes the staged files: a shadow where the target cannot."""
    return next((ref.removeprefix("table ") for ref in view.refs if ref.startswith("table ")), view.table)
