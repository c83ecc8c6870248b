"""Check what a product file says about late data: durations that fit each other, and a policy that is true. Pure."""

from __future__ import annotations

from errata.model.duration import to_seconds
from errata.model.graph.read_rule import Shift
from errata.model.product.late import RUN
from errata.project.forms import ProductForm
from errata.project.problems import ProblemReport


def check_late(file: ProductForm, report: ProblemReport) -> None:
    """Report a key ``late`` that contradicts itself or the rest of the product file."""
    late = file.late
    if late is None:
        return
    if to_seconds(late.latest) < to_seconds(late.settle):
        report.at(("late", "latest"), f"expected at least settle, which is {late.settle}")
    looking = [name for name, one in file.inputs.items() if _looks_elsewhere(one.lookback, one.lookahead)]
    keeps_beside = file.publish.mode == "corrections" or file.publish.corrections is not None
    path = ("late", "policy")
    if late.policy == "partition" and looking:
        report.at(path, f"late rows of {looking[0]} change other partitions too, by its look-back; expected lookback")
    elif late.policy == "lookback" and not looking:
        report.at(path, "no input has a look-back or look-ahead; expected partition")
    elif late.policy == "corrections" and not keeps_beside:
        report.at(path, "expected publish.mode corrections, or a table in publish.corrections")
    if late.act == RUN and not file.repeatable:
        said = "a transform that is declared as not repeatable needs a person for every run; expected propose"
        report.at(("late", "act"), said)


def _looks_elsewhere(lookback: str, lookahead: str) -> bool:
    return any(Shift.parse(text) != Shift() for text in (lookback, lookahead))
