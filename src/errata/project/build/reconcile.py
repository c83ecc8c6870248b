"""Build reconciliations and control periods: groups, filters, and which partitions are comparable. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.model.partition import Grain
from errata.model.product import Control, GroupKey, Reconciliation
from errata.project.files import ControlFile, ProductFile, ReconcileFile
from errata.project.problems import ProblemReport
from errata.project.yaml.problem_texts import find_nearest

REACH = 4
WARN, BLOCK = "3.5", "8"
_UNIT = {Grain.HOUR: "weeks", Grain.DAY: "weeks", Grain.MONTH: "years"}
"""Unit in which comparable partitions are counted, for the grains that have any."""


def build_reconciliations(file: ProductFile, report: ProblemReport) -> tuple[Reconciliation, ...]:
    """The reconciliations of a product file."""
    return tuple(_build_reconciliation(n, given, file, report) for n, given in enumerate(file.reconcile))


def _build_reconciliation(n: int, given: ReconcileFile, file: ProductFile, report: ProblemReport) -> Reconciliation:
    path = ("reconcile", n, "input")
    source = file.inputs.get(given.input)
    if source is None:
        close = find_nearest(given.input, file.inputs)
        hint = f' (nearest: "{close}")' if close else ""
        report.at(path, f"expected one of the inputs {', '.join(file.inputs)}{hint}")
    elif source.own:
        report.at(path, "own output cannot be reconciled with itself; expected another input")
    elif source.partition is None and given.per == "partition":
        report.at(path, "an input that is read whole has no partitions; expected per: run beside it")
    return Reconciliation(
        name=given.name,
        input=given.input,
        source=given.source,
        target=given.target,
        tolerance=given.tolerance,
        by=_build_group_keys(n, given, report),
        where=given.where,
        source_where=given.source_where,
        target_where=given.target_where,
        per=given.per,
    )


def _build_group_keys(n: int, given: ReconcileFile, report: ProblemReport) -> tuple[GroupKey, ...]:
    if isinstance(given.by, dict):
        return tuple(
            GroupKey(name, key, key) if isinstance(key, str) else GroupKey(name, key.source, key.target)
            for name, key in given.by.items()
        )
    names = given.by or []
    for m, name in enumerate(names):
        if name in names[:m]:
            report.at(("reconcile", n, "by", m), "given twice")
    return tuple(GroupKey(name, name, name) for name in names)


def build_controls(file: ProductFile, report: ProblemReport) -> tuple[Control, ...]:
    """The control periods of a product file."""
    grain = Grain(file.target.partition.grain)
    return tuple(_build_control(n, given, grain, report) for n, given in enumerate(file.control))


def _build_control(n: int, given: ControlFile, grain: Grain, report: ProblemReport) -> Control:
    path = ("control", n)
    unit = _UNIT.get(grain)
    if unit is None:
        report.at(path, f"partitions by {grain} have no comparable ones; expected hour, day or month", found=False)
    for key in ("weeks", "years"):
        if unit and key != unit and getattr(given, key) is not None:
            report.at_key((*path, key), f'the key "{key}" in control[{n}] does not fit a target by {grain}; use {unit}')
    for key in ("warn", "block"):
        score = getattr(given, key)
        if score is not None and Decimal(score) <= 0:
            report.at((*path, key), "expected a score above 0")
    neither = given.warn is None and given.block is None
    warn, block = (WARN, BLOCK) if neither else (given.warn, given.block)
    if warn is not None and block is not None and Decimal(warn) > Decimal(block):
        report.at((*path, "warn"), f"expected no more than block, {block}")
    if given.name is None and "=" in given.metric:
        report.at_key((*path, "name"), f'missing key "name" in control[{n}], whose metric has an "=" in it')
    reach = given.weeks or given.years or REACH
    if given.least > 2 * reach:
        report.at((*path, "least"), f"expected at most {2 * reach}, because there are no more")
    return Control(given.name or f"control({given.metric})", given.metric, reach, given.least, warn, block)
