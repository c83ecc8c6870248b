"""Build reconciliations and control periods: groups, filters, and which partitions are comparable. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from errata.model.graph.read_rule import is_wider
from errata.model.partition import Grain
from errata.model.product import Control, GroupKey, Reconciliation
from errata.project.forms import ControlForm, DistributionForm, ProductForm, ReconciliationForm, narrow
from errata.project.problems import ProblemReport
from errata.project.yaml.problem_texts import hint_nearest

_UNIT = {Grain.HOUR: "weeks", Grain.DAY: "weeks", Grain.MONTH: "years"}
"""Unit in which comparable partitions are counted, for the grains that have any."""


def build_reconciliations(file: ProductForm, report: ProblemReport) -> tuple[Reconciliation, ...]:
    """The reconciliations of a product file."""
    return tuple(_build_reconciliation(n, given, file, report) for n, given in enumerate(file.reconcile))


def _build_reconciliation(
    n: int, given: ReconciliationForm, file: ProductForm, report: ProblemReport
) -> Reconciliation:
    path = ("reconcile", n, "input")
    source = file.inputs.get(given.input)
    if source is None:
        report.at(path, f"expected one of the inputs {', '.join(file.inputs)}{hint_nearest(given.input, file.inputs)}")
    elif source.own:
        report.at(path, "own output cannot be reconciled with itself; expected another input")
    elif source.grain and is_wider(source.grain, file.target.grain):
        said = (
            f"rows of a {source.grain} are in no single {file.target.grain}; expected an input by {file.target.grain}"
        )
        report.at(path, said)
    elif source.partition is None and given.per == "partition":
        report.at(path, "an input that is read whole has no partitions; expected per: run beside it")
    return narrow(Reconciliation, given, by=_build_group_keys(n, given, report))


def _build_group_keys(n: int, given: ReconciliationForm, report: ProblemReport) -> tuple[GroupKey, ...]:
    if isinstance(given.by, Mapping):
        return tuple(
            GroupKey(name, key, key) if isinstance(key, str) else replace(key, name=name)
            for name, key in given.by.items()
        )
    names = given.by or ()
    report.refuse_repeats(names, ("reconcile", n, "by"))
    return tuple(GroupKey(name, name, name) for name in names)


def build_controls(file: ProductForm, report: ProblemReport) -> tuple[Control, ...]:
    """The control periods of a product file."""
    return tuple(_build_control(n, given, file.target.grain, report) for n, given in enumerate(file.control))


def _build_control(n: int, given: ControlForm, grain: Grain, report: ProblemReport) -> Control:
    path = ("control", n)
    reach = check_reach(path, given, grain, report)
    for key in ("warn", "block"):
        score = getattr(given, key)
        if score is not None and Decimal(score) <= 0:
            report.at((*path, key), "expected a score above 0")
    neither = given.warn is None and given.block is None
    default = Control(given.name or f"control({given.metric})", given.metric)
    warn, block = (default.warn, default.block) if neither else (given.warn, given.block)
    if warn is not None and block is not None and Decimal(warn) > Decimal(block):
        report.at((*path, "warn"), f"expected no more than block, {block}")
    if not given.name and "=" in given.metric:
        report.at_key((*path, "name"), f'missing key "name" in control[{n}], whose metric has an "=" in it')
    return replace(default, reach=reach, least=given.least, warn=warn, block=block)


def check_reach(
    path: tuple[str, int], given: ControlForm | DistributionForm, grain: Grain, report: ProblemReport
) -> int:
    """How many weeks or years around a partition its controls are searched; reports a grain that has none."""
    unit, (section, n) = _UNIT.get(grain), path
    if unit is None:
        report.at(path, f"partitions by {grain} have no comparable ones; expected hour, day or month", found=False)
    for key in ("weeks", "years"):
        if unit and key != unit and getattr(given, key) is not None:
            said = f'the key "{key}" in {section}[{n}] does not fit a target by {grain}; use {unit}'
            report.at_key((*path, key), said)
    reach = given.weeks or given.years or given.reach
    if given.least > 2 * reach:
        report.at((*path, "least"), f"expected at most {2 * reach}, because there are no more")
    return reach
