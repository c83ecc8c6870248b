"""What a person asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from errata.errors import UsageError
from errata.model.duration import steps
from errata.model.manifest import Override
from errata.model.partition import Grain, expand, oldest_first, parse, parse_list, widen
from errata.model.product import Input

__all__ = ["KINDS", "ORDERS", "RULES", "Request", "input_partitions", "look", "parse_override", "resolve"]

KINDS = (
    "backfill",
    "reprocess",
    "restate",
    "repair",
    "replay",
    "bootstrap",
    "migrate",
    "reconstruct",
    "restore",
    "attest",
    "reconcile",
)
ORDERS = ("newest", "oldest", "sequential")
RULES = (
    "range",
    "recent",
    "locked",
    "source-missing",
    "source-retention",
    "empty",
    "overlap",
    "rows",
    "bytes",
    "cost",
    "streaming-readers",
    "dirty-tree",
    "schema",
    "live-retries",
)


@dataclass(frozen=True, slots=True)
class Request:
    """Product, half-open range or list, kind, reason, requester; the range is required, never "everything"."""

    product: str
    reason: str
    requester: str
    start: str | None = None
    end: str | None = None
    partitions: str | Sequence[str] | None = None
    kind: str = "restate"
    order: str = "newest"
    canary: int = 0
    supersede: str | None = None
    overrides: tuple[Override, ...] = ()

    def __post_init__(self) -> None:
        _one_of("kind", self.kind, KINDS)
        _one_of("order", self.order, ORDERS)
        for override in self.overrides:
            _one_of("override", override.rule, RULES)
        if not self.reason.strip():
            raise UsageError("a plan without a reason was refused; expected --reason with what is being corrected")
        if self.canary < 0:
            raise UsageError(f"--canary {self.canary} was refused; expected 0 or more partitions")


def resolve(request: Request, grain: Grain) -> tuple[str, ...]:
    """The partitions to publish, oldest first."""
    by_range = request.start is not None or request.end is not None
    if by_range and request.partitions is not None:
        raise UsageError("a range and a list were both given; expected --from and --to, or --partitions")
    if request.partitions is not None:
        if isinstance(request.partitions, str):
            return parse_list(grain, request.partitions)
        if not request.partitions:
            raise UsageError("an empty partition list was refused; expected at least one partition")
        return oldest_first(grain, {parse(grain, text) for text in request.partitions})
    if request.start is None or request.end is None:
        raise UsageError(
            "a plan without a range was refused; expected --from and --to, or --partitions",
            state="nothing was planned",
            hint=f'errata plan {request.product} --from D --to D --reason "…"',
        )
    return expand(grain, request.start, request.end)


def look(source: Input, grain: Grain) -> tuple[int, int]:
    """Look-back and look-ahead of an input, in partitions of the product."""
    return steps(source.lookback, grain), steps(source.lookahead, grain)


def input_partitions(source: Input, grain: Grain, partitions: Sequence[str]) -> tuple[str, ...]:
    """The partitions whose input is needed, oldest first; none for an input that is read whole."""
    return widen(grain, partitions, *look(source, grain)) if source.partition else ()


def parse_override(text: str) -> Override:
    """``RULE=WHY`` from the command line.

    >>> parse_override("recent=books closed early")
    Override(rule='recent', why='books closed early')
    """
    rule, equals, why = text.partition("=")
    _one_of("override", rule, RULES)
    if not equals or not why.strip():
        raise UsageError(f"override {text!r} was refused; expected {rule}=WHY, because the reason is kept")
    return Override(rule, why.strip())


def _one_of(what: str, found: str, known: Sequence[str]) -> None:
    if found not in known:
        near = get_close_matches(found, known, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{what} {found!r} is not known; expected one of {', '.join(known)}{meant}")
