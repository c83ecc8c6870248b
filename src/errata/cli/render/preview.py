"""Render the preview of a candidate: its name, its expiry and the statements for readers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errata.cli.render.approval import render_mode
from errata.cli.render.layout import flow, format_labelled, render_warnings, wrap
from errata.text.numbers import format_moment

if TYPE_CHECKING:
    from errata.views import DarkView


def render_preview(view: DarkView, width: int) -> list[str]:
    """The name, the statements, and the comparison view."""
    word = "already readable" if view.already else "readable"
    lines = flow(
        [f"{word} {view.run_id}", view.name, f"snapshot {view.snapshot_id}", f"until {view.keep_until}"], width
    )
    if view.rejected:
        lines += wrap("REJECTED: this candidate did not pass its gate; it is here to be looked at", width, "! ")
    lines.append("  main is not touched; only readers who use the name see it")
    for reader, statement in view.reads.items():
        lines += _render_statement(reader, statement)
    if view.view:
        lines += _render_statement("old and new side by side", f"SELECT * FROM {view.view}")  # noqa: S608 - shown, not run
    elif view.comparison:
        lines += _render_statement("old and new side by side", view.comparison)
    else:
        lines.append("  old and new are compared by key; the product has none")
    lines += render_warnings(view.warnings, width, "  ! ")
    return lines + [f"  {line}" for line in render_mode(view.single_user)]


def _render_statement(label: str, statement: str) -> list[str]:
    # statements to copy are never broken
    return [f"  {label}", f"    {statement}"]


def render_preview_name(dark: Mapping[str, Any] | None, width: int) -> list[str]:
    """The preview name in a status."""
    if dark is None:
        return []
    told = [f"{dark['name']} of {dark['table']}, by {dark['person']}, {format_moment(str(dark['at']))} UTC"]
    told += ["REJECTED: it did not pass its gate"] if dark["rejected"] else []
    told += [f"old and new: {dark['view']}"] if dark["view"] else []
    return format_labelled("readable", told, width, 10)
