"""Check the limits of a rule: at least one of warn and block, the smaller one first. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.project.problems import ProblemReport


def check_limits(path: tuple[str | int, ...], warn: str | None, block: str | None, report: ProblemReport) -> None:
    """Report a rule at this position that could not find anything, or whose block would come before its warning."""
    if warn is None and block is None:
        report.at(path, "expected warn or block or both", found=False)
    elif warn is not None and block is not None:
        same_unit = warn.endswith("%") == block.endswith("%")
        if same_unit and Decimal(warn.rstrip("%")) > Decimal(block.rstrip("%")):
            report.at((*path, "warn"), f"expected no more than block, {report.text_at((*path, 'block'))}")
