"""Escaped HTML elements. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

from errata.text.escape import escape_text


class Markup(str):
    """Text that is already HTML; created only by this module."""

    __slots__ = ()


Child: TypeAlias = "str | int | Markup | Iterable[Child] | None"

_DATE = re.compile(r"(\d{4}-\d{2}(?:-\d{2}(?:T\d{2})?)?)")
_VOID = frozenset({"br", "col", "hr", "link", "meta"})


def raw(trusted: str) -> Markup:
    """Our own constant text (a style sheet), unescaped."""
    return Markup(trusted)


def el(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element. ``class_`` is class, ``aria_label`` is aria-label; None and False leave an attribute out.

    >>> el("td", "<script>", class_="n", title=None)
    '<td class="n">&lt;script&gt;</td>'
    """
    told = "".join(_format_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{told}>")
    return Markup(f"<{tag}{told}>{join_markup(children)}</{tag}>")


def nowrap_dates(text: str) -> Markup:
    """Text without line breaks inside dates."""
    pieces = _DATE.split(text)
    return join_markup(el("span", piece, class_="nw") if n % 2 else piece for n, piece in enumerate(pieces))


def join_markup(children: Iterable[Child]) -> Markup:
    """Children one after the other; text is escaped, markup is not."""
    return Markup("".join(_escape_child(child) for child in children))


def _escape_child(child: Child) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str():
            return html.escape(escape_text(child), quote=False)
        case int():
            return str(child)
        case _:
            return join_markup(child)


def _format_attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    key = name.rstrip("_").replace("_", "-")
    text = format_coordinate(value) if isinstance(value, float) else escape_text(str(value))
    return f" {key}" if value is True else f' {key}="{html.escape(text)}"'


def format_coordinate(value: float) -> str:
    """A number of a drawing, to a tenth."""
    return format(value, ".1f").rstrip("0").rstrip(".")
