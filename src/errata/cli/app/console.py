"""Consoles for text, with the colours of Errata; JSON needs none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.theme import Theme

THEME = Theme(
    {
        "errata.good": "green",
        "errata.warn": "yellow",
        "errata.bad": "bold red",
        "errata.next": "bold",
        "errata.dim": "dim",
        "errata.busy": "cyan",
    }
)


class SignHighlighter(RegexHighlighter):
    """Colours the signs and words of the output; the text carries the meaning without it."""

    base_style = "errata."
    highlights = (
        r"(?m)^\s*(?P<good>✓)",
        r"(?m)^\s*(?P<warn>!) ",
        r"(?m)^\s*(?P<bad>✗)",
        r"(?P<good>[✓▣])",
        r"(?P<busy>▶)",
        r"(?P<warn>↺)",
        r"(?P<bad>✗)",
        r"(?m)^(?P<next>next:.*)$",
        r"(?m)^(?P<bad>error\[[a-z-]+\])",
        r"(?P<dim> · )",
    )


def build_console(stream: TextIO, width: int | None, environ: Mapping[str, str]) -> Console:
    """A console that prints text as it is."""
    return Console(
        file=stream,
        width=width,
        theme=THEME,
        highlighter=SignHighlighter(),
        markup=False,
        emoji=False,
        _environ=environ,
    )
