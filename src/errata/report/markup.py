"""HTML by construction: what is not markup is escaped, so a value can never become an element nor turn a line. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

from errata.model.visible import visible

__all__ = ["Child", "Markup", "dated", "el", "join", "raw"]


class Markup(str):
    """Text that is HTML already; made by this module only."""

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
    told = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{told}>")
    return Markup(f"<{tag}{told}>{join(children)}</{tag}>")


def dated(text: str) -> Markup:
    """Text in which no line ends within a date."""
    pieces = _DATE.split(text)
    return join(el("span", piece, class_="nw") if n % 2 else piece for n, piece in enumerate(pieces))


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other; text is escaped, markup is not."""
    return Markup("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str():
            return html.escape(visible(child), quote=False)
        case int():
            return str(child)
        case _:
            return join(child)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{html.escape(visible(str(value)))}"'
