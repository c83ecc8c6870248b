"""Check the rules for events that were never recorded: what each can decide, and in which order they may be. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.model.graph.read_rule import Shift
from errata.model.product.reconstruction import RebuildRule, Reconstruction, count_partitions_around
from errata.project.forms import ProductForm
from errata.project.problems import ProblemReport

_Path = tuple[str | int, ...]
_MOST_DIGITS = 2
_SHORTEST_MONTH = 28 * 24  # hours


def check_reconstruction(file: ProductForm, report: ProblemReport) -> None:
    """Report every rule that could not do what it says."""
    rules = file.reconstruct
    if rules is None:
        return
    if file.publish.mode != "replace_partitions":
        said = "a run that rebuilds events replaces whole partitions; expected publish.mode replace_partitions"
        report.at_key(("reconstruct",), said)
    if any(source.own for source in file.inputs.values()):
        report.at_key(("reconstruct",), "a product that reads its own output cannot rebuild events of it")
    seen: dict[str, int] = {}
    matched: str | None = None
    for n, rule in enumerate(rules.rules):
        path = ("reconstruct", "rules", n)
        if rule.name in seen:
            report.at((*path, "name"), f"expected a unique name; rule {seen[rule.name] + 1} has it", found=False)
        seen.setdefault(rule.name, n)
        _check_rule(file, rules, rule, path, report)
        if rule.identity and matched is not None:
            said = (
                f"{rule.name} goes by identity and comes after {matched}, whose events have none of this source; "
                "expected rules with identity before those with match, or an event could be added by both"
            )
            report.at((*path, "identity"), said, found=False)
        matched = matched or (rule.name if rule.match else None)


def _check_rule(
    file: ProductForm, rules: Reconstruction, rule: RebuildRule, path: _Path, report: ProblemReport
) -> None:
    if bool(rule.identity) == (rule.match is not None):
        report.at(path, "expected one of identity and match", found=False)
    if rule.key and rule.match is None:
        report.at_key((*path, "key"), "the key belongs to match; a rule with identity goes by its columns")
    number = Decimal(rule.confidence)
    if not 0 <= number <= 1 or -int(number.as_tuple().exponent) > _MOST_DIGITS:
        report.at((*path, "confidence"), "expected a number from 0 to 1 with at most two digits after the point")
    source = file.inputs.get(rule.source)
    if source is None:
        report.at((*path, "source"), f"expected one of the inputs {', '.join(file.inputs)}")
        return
    steps = count_partitions_around(rules, file.target.grain) if rule.match and source.partition else 0
    wanted = Shift.of_steps(steps, file.target.grain)
    for key, given in (("lookback", source.lookback), ("lookahead", source.lookahead)):
        if steps and not _covers(given, wanted):
            said = (
                f"{rule.name} compares events across the edge of a partition; expected {key} of at least "
                f"{steps} {file.target.grain}{'s' if steps > 1 else ''} in inputs.{rule.source}"
            )
            report.at((*path, "match"), said, found=False)


def _covers(given: str, wanted: Shift) -> bool:
    found = Shift.parse(given)
    return found.hours + found.months * _SHORTEST_MONTH >= wanted.hours + wanted.months * _SHORTEST_MONTH
