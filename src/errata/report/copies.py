"""Section on copies in warehouses: what each of them got, and whether it equals the lake. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from errata.model.copy.delivered_state import DeliveredState
from errata.model.copy.summary import CopySummary
from errata.report.html import render_section, render_table, render_tile
from errata.text.markup import Child, Markup, el
from errata.text.numbers import format_exact, format_moment, plural

_MARKS = {
    DeliveredState.YES: ("good", "✓", "delivered"),
    DeliveredState.PENDING: ("warn", "▶", "pending"),
    DeliveredState.FAILED: ("bad", "✗", "failed"),
    DeliveredState.WAIVED: ("warn", "!", "given up"),
}
_SAME = {True: ("good", "=", "equal"), False: ("bad", "≠", "differs")}
_HEAD = ("Copy", "State", "Partitions", "Rows", "Lake = copy", "Delivered", "Visible after")


def render_copies(copies: Sequence[CopySummary], folded: Callable[[Sequence[str]], str]) -> list[Child]:
    """One row for each copy; no section if the run has none."""
    if not copies:
        return []
    rows = [_list_cells(one, folded) for one in copies]
    return [
        render_section(
            "Copies",
            render_table(_HEAD, rows, caption="Copies in warehouses", numbers=(3,), classes="stack"),
            el(
                "p",
                "Rows and checksums are those of the receipts: the lake, the staging table, the copy before its commit"
                " and the copy afterwards.",
                class_="dim",
            ),
            name="copies",
        )
    ]


def render_copy_tile(copies: Sequence[CopySummary]) -> list[Child]:
    """How many of the copies have it all, and what became of the others; nothing if the run has none."""
    if not copies:
        return []
    states = [one.state for one in copies]
    others = [state for state in (DeliveredState.FAILED, DeliveredState.PENDING, DeliveredState.WAIVED)
              if state in states]  # fmt: skip
    told = ", ".join(f"{states.count(state)} {_MARKS[state][2]}" for state in others)
    return [render_tile("Copies", f"{states.count(DeliveredState.YES)} of {len(states)} delivered", told)]


def _list_cells(one: CopySummary, folded: Callable[[Sequence[str]], str]) -> list[Child]:
    kind, sign, word = _MARKS[one.state]
    state: list[Child] = [_mark(kind, sign, word)]
    if one.waived_by:
        state.append(el("div", f"{one.waived_by} gave up {folded(one.missing)}: {one.waived_why}"))
    elif one.error:
        state.append(el("div", one.error))
    many = plural(one.partitions, "partition")
    if one.missing:
        many = f"{format_exact(one.delivered)} of {many}"
    missing = [el("div", f"not there: {folded(one.missing)}", class_="dim")] if one.missing else []
    return [
        el("span", one.copy, class_="nw"),
        state,
        [many, *missing],
        format_exact(one.rows) if one.rows is not None else "–",
        "not compared" if one.is_same is None else _mark(*_SAME[one.is_same]),
        el("span", f"{format_moment(one.delivered_at)} UTC", class_="nw") if one.delivered_at else "–",
        f"{one.seconds:,.1f} s" if one.seconds is not None else "–",
    ]


def _mark(kind: str, sign: str, word: str) -> Markup:
    return el("span", el("b", sign, aria_hidden="true"), f" {word}", class_=f"mark {kind}")
