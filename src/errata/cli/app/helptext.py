"""Help texts: commands in groups, examples on their own lines. Pure."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperGroup


def to_help_text(docstring: str | None) -> str:
    r"""Turn a docstring into help text; the example stays on one line, so that it can be copied.

    >>> to_help_text("Do it.\n\nExample: errata do it")
    'Do it.\n\n\x08\nExample:\n  errata do it'
    """
    return inspect.cleandoc(docstring or "").replace("\n\nExample: ", "\n\n\b\nExample:\n  ")


class GroupedHelp(TyperGroup):
    """The top-level command group; lists its commands by purpose."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group, in the order of a correction's life."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            found = self.get_command(ctx, name)
            if found is None or found.hidden:
                continue
            panel = getattr(found, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Commands"
            groups.setdefault(title, []).append((name, found.get_short_help_str(limit=64)))
        longest = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), text) for name, text in rows])
