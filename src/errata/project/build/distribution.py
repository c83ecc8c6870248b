"""Build distribution rules: quantiles or shares, their limits, and what they are compared with. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.model.partition import Grain
from errata.model.product import Distribution
from errata.project.build.limits import check_limits
from errata.project.build.reconcile import check_reach
from errata.project.forms import DistributionForm, ProductForm, narrow
from errata.project.problems import ProblemReport

MAX_QUANTILES = 10
"""Most quantiles of one rule; all of them are in one finding."""
_OF_CONTROLS = ("weeks", "years", "least")


def build_distributions(file: ProductForm, report: ProblemReport) -> tuple[Distribution, ...]:
    """The distribution rules of a product file."""
    return tuple(_build_distribution(n, given, file.target.grain, report) for n, given in enumerate(file.distribution))


def _build_distribution(n: int, given: DistributionForm, grain: Grain, report: ProblemReport) -> Distribution:
    path = ("distribution", n)
    if bool(given.quantiles) == given.shares:
        report.at(path, "expected one of quantiles and shares: true", found=False)
    _check_quantiles(path, given, report)
    check_limits(path, given.warn, given.block, report)
    if given.shares:
        for key, limit in (("warn", given.warn), ("block", given.block)):
            if limit is not None and not limit.endswith("%"):
                report.at((*path, key), "shares move by percentage points; expected a percentage such as 5%")
    reach = given.reach
    if given.against == "control":
        reach = check_reach(path, given, grain, report)
    else:
        for key in _OF_CONTROLS:
            if key in report.keys_at(path):
                said = f'the key "{key}" in distribution[{n}] belongs to against: control'
                report.at_key((*path, key), said)
    return narrow(Distribution, given, name=given.name or _name_rule(given), reach=reach)


def _check_quantiles(path: tuple[str, int], given: DistributionForm, report: ProblemReport) -> None:
    if len(given.quantiles) > MAX_QUANTILES:
        report.at((*path, "quantiles"), f"expected at most {MAX_QUANTILES} quantiles", found=False)
    seen: set[Decimal] = set()
    for m, text in enumerate(given.quantiles):
        quantile = Decimal(text)
        if not 0 < quantile < 1:
            report.at((*path, "quantiles", m), "expected a number between 0 and 1, such as 0.95")
        elif quantile in seen:
            report.at((*path, "quantiles", m), "given twice")
        seen.add(quantile)


def _name_rule(given: DistributionForm) -> str:
    what = "shares" if given.shares else "quantiles"
    beside = " against control" if given.against == "control" else ""
    return f"{what}({given.column}){beside}"
