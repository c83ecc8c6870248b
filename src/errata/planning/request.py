"""A request for a correction: its fields, and the partitions, order and canary it resolves to. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from errata.errors import UsageError
from errata.model.kind import ATTEST, KINDS, REPAIR_COPIES, find_kind
from errata.model.manifest import Override
from errata.model.partition import (
    NULL,
    Grain,
    expand_range,
    format_ranges,
    parse_list,
    parse_partition,
    sort_oldest_first,
)
from errata.model.product import Product
from errata.model.product.rules import build_expected_rows

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
ORDERS = ("newest", "oldest", "sequential")
RULES = (
    "kind",
    "range",
    "recent",
    "locked",
    "source-missing",
    "source-retention",
    "change-log",
    "privacy",
    "empty",
    "waiting",
    "overlap",
    "ledger",
    "append",
    "reference",
    "rule-versions",
    "restore",
    "rows",
    "bytes",
    "cost",
    "streaming-readers",
    "consumers",
    "dirty-tree",
    "policy",
    "schema",
    "rewrite",
    "live-retries",
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to plan; it must name a half-open range or a list of partitions, never "everything"."""

    product: str
    reason: str
    requester: str
    start: str | None = None
    end: str | None = None
    partitions: str | Sequence[str] | None = None
    kind: str = "restate"
    order: str | None = None  # newest, or sequential for a product that reads its own output
    canary: int | str = 0  # number of partitions, or a list in the form of ``partitions``
    supersede: str | None = None
    overrides: tuple[Override, ...] = ()
    prove_determinism: int = 0  # number of sample chunks to compute twice
    deadline: str | None = None  # only a question, never part of the manifest
    restore: str | None = None  # the snapshot, tag or time whose rows are put back
    restore_from: str | None = None  # a table, copy or source whose rows are put back, in place of the target's own
    copies: tuple[str, ...] | None = None  # names of copies to repair; empty: all that differ
    expected_rows: str | None = None  # of the whole run; in place of the product's policy

    def __post_init__(self) -> None:
        _require_known("kind", self.kind, tuple(KINDS))
        if self.order is not None:
            _require_known("order", self.order, ORDERS)
        for override in self.overrides:
            _require_known("override", override.rule, RULES)
        is_restore = self.restore is not None or self.restore_from is not None
        if (self.kind == "restore") != is_restore:
            raise _usage_error(
                f"kind {self.kind} {'with' if is_restore else 'without'} --restore was refused; expected both or "
                "neither: a restore puts back what the table held at a snapshot, a tag or a time, or what "
                "--restore-from holds",
                hint="errata history TABLE PARTITION shows what there is",
            )
        if (self.kind == REPAIR_COPIES) != (self.copies is not None):
            raise _usage_error(
                f"kind {self.kind} {'with' if self.copies is not None else 'without'} --copies was refused; expected "
                "--kind repair with it: copies get what is accepted, and nothing is computed"
            )
        kind = find_kind(self.kind)
        if not kind.runs_transform and self.prove_determinism:
            raise _usage_error(f"--prove-determinism was refused; a run of kind {self.kind} computes nothing")
        if (not kind.changes_table or kind.only_copies) and self.canary:
            raise _usage_error(
                f"--canary was refused; a run of kind {self.kind} publishes nothing that a canary could protect"
            )
        if self.expected_rows is not None and build_expected_rows(self.expected_rows) is None:
            raise _usage_error(
                f"--expected-rows {self.expected_rows} was refused; expected a number of rows: 5000, 1000..5000, "
                "1000.. or ..5000"
            )
        if self.expected_rows is not None and self.kind == ATTEST:
            raise _usage_error("--expected-rows was refused; an attestation compares every row with main")
        if not self.reason.strip():
            raise _usage_error(
                "a plan without a reason was refused; expected --reason with what is being corrected",
            )
        if isinstance(self.canary, int) and self.canary < 0:
            raise _usage_error(f"--canary {self.canary} was refused; expected 0 or more partitions")
        if self.prove_determinism < 0:
            raise _usage_error(
                f"--prove-determinism {self.prove_determinism} was refused; expected 0 or more chunks",
            )


def resolve_partitions(request: Request, grain: Grain) -> tuple[str, ...]:
    """Partitions to publish, oldest first."""
    found = resolve_scope(grain, request.start, request.end, request.partitions)
    if found is None:
        raise _usage_error(
            "a plan without a range was refused; expected --from and --to, or --partitions",
            hint=f'errata plan {request.product} --from D --to D --reason "…"',
        )
    return found


def resolve_scope(
    grain: Grain, start: str | None, end: str | None, partitions: str | Sequence[str] | None
) -> tuple[str, ...] | None:
    """Partitions of a half-open range or of a list, oldest first; None if neither is given in full."""
    by_range = start is not None or end is not None
    if by_range and partitions is not None:
        raise _usage_error("a range and a list were both given; expected --from and --to, or --partitions")
    if partitions is not None:
        if isinstance(partitions, str):
            return parse_list(grain, partitions)
        if not partitions:
            raise _usage_error("an empty partition list was refused; expected at least one partition")
        return sort_oldest_first(grain, {parse_partition(grain, text) for text in partitions})
    return None if start is None or end is None else expand_range(grain, start, end)


def refuse_other_spellings(partitions: Sequence[str], column_type: str | None) -> None:
    """Refuse a second spelling of a whole number: ``07`` and ``7`` would be two partitions here, one in the table."""
    if column_type not in ("int", "long"):
        return
    wrong = [text for text in partitions if text != NULL and not _WHOLE.fullmatch(text)]
    if wrong:
        raise _usage_error(
            f"partition {wrong[0]!r} was refused; the column holds whole numbers, written without zeros, signs or "
            "spaces before them",
        )


def resolve_order(request: Request, product: Product) -> str:
    """Order of computation; always sequential for a product that reads its own output."""
    own = next((source.name for source in product.inputs if source.own), None)
    if own is None:
        return request.order or "newest"
    if request.order not in (None, "sequential"):
        raise _usage_error(
            f"--order {request.order} was refused; expected sequential: input {own} of {product.name} is its own "
            "output, so every partition needs those before it",
            hint="leave --order out",
        )
    return "sequential"


def resolve_canary(request: Request, ordered: Sequence[str], grain: Grain, order: str) -> tuple[str, ...]:
    """Partitions that run first and must pass before the others start, in order of computation."""
    if isinstance(request.canary, int):
        return tuple(ordered[: request.canary])
    text = request.canary.strip()
    if text.isdecimal() and text.isascii() and len(text) < 10:
        return tuple(ordered[: int(text)])
    wanted = set(parse_list(grain, text))
    outside = wanted.difference(ordered)
    if outside:
        found = format_ranges(grain, outside)
        raise _usage_error(f"--canary {text} was refused; expected partitions of the scope; {found} is outside it")
    chosen = tuple(name for name in ordered if name in wanted)
    if order == "sequential" and chosen != tuple(ordered[: len(chosen)]):
        raise _usage_error(
            f"--canary {text} was refused; expected the oldest partitions of the scope, because --order sequential "
            "computes no partition before those ahead of it",
            hint=f"--canary {len(chosen)}",
        )
    return chosen


def _require_known(what: str, found: str, known: Sequence[str]) -> None:
    if found not in known:
        near = get_close_matches(found, known, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise _usage_error(f"{what} {found!r} is not known; expected one of {', '.join(known)}{meant}")


def _usage_error(message: str, hint: str | None = None) -> UsageError:
    return UsageError(message, state="nothing was planned", hint=hint)
