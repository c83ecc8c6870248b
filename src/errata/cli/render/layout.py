"""Lay out lines of text for a given width: wrapping, labelled rows, columns, trees. Pure.

Words are never cut: text that does not fit goes to the next line, and a word longer than a line (a digest, a run id, a
path) gets its own line, which the terminal wraps. Lines that hold a command are never broken, so that they can be
copied.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from errata.text.escape import escape_text

GAP = "   "
_TOGETHER = re.compile(r"(?<=\S) (…|→) (?=\S)")
"""Signs that are not separated from the text on either side."""


def pad(text: str, width: int) -> str:
    """Pad text to a number of cells."""
    return text + " " * (width - cell_len(text))


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Wrap prose; ``first`` opens the first line, ``rest`` the others (blanks of the same width by default).

    Line breaks within the text are indented, so that no line of it can pass for one of Errata's own.
    """
    rest = " " * cell_len(first) if rest is None else rest
    lines: list[str] = []
    for piece in text.splitlines() or [""]:
        opening = (rest or "  ") if lines else first
        lines += textwrap.wrap(
            _TOGETHER.sub("\u00a0\\1\u00a0", escape_text(piece)).replace(" %", "\u00a0%"),
            max(width, 20),
            initial_indent=opening,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [opening.rstrip()]
    return [line.replace("\u00a0", " ") for line in lines]


def flow(pieces: Iterable[str], width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Put pieces side by side with a gap; a piece that does not fit starts the next line."""
    rest = " " * cell_len(first) if rest is None else rest
    lines: list[str] = []
    line, empty = first, True
    for piece in map(escape_text, filter(None, pieces)):
        longer = line + piece if empty else line + GAP + piece
        if not empty and cell_len(longer) > width:
            lines.append(line)
            line, empty, longer = rest, True, rest + piece
        if cell_len(longer) > width:
            *full, longer = wrap(piece, width, line, rest)
            lines += full
        line, empty = longer, False
    return [text.rstrip() for text in [*lines, line]]


def format_labelled(label: str, pieces: Iterable[str], width: int, label_width: int = 11) -> list[str]:
    """A row ``  label      piece   piece``."""
    return flow(pieces, width, f"  {pad(label, label_width)} ")


def format_columns(
    rows: Sequence[Sequence[str]], width: int, *, indent: str = "  ", right: Iterable[int] = (), gap: str = "  "
) -> list[str]:
    """A table without rules; the last column wraps, or moves to its own line in rows too wide for that."""
    if not rows:
        return []
    to_right = set(right)
    last = max(len(row) for row in rows) - 1
    widths = [max((cell_len(row[n]) for row in rows if n < len(row)), default=0) for n in range(last + 1)]
    lines: list[str] = []
    for row in rows:
        cells = [
            " " * (widths[n] - cell_len(cell)) + cell if n in to_right else pad(cell, widths[n])
            for n, cell in enumerate(row)
        ]
        head = indent + gap.join(cells[:last])
        if len(row) <= last or last in to_right or not last:
            lines.append((indent + gap.join(cells)).rstrip())
        elif cell_len(head) + len(gap) + min(widths[last], 20) > width:
            lines += [head.rstrip(), *wrap(row[last], width, indent + "    ")]
        else:
            lines += [line.rstrip() for line in wrap(row[last], width, head + gap)]
    return lines


class Branch:
    """A line of a tree and what is below it."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.below: list[Branch] = []

    def add(self, label: str) -> Branch:
        """Add a line below this one."""
        self.below.append(Branch(label))
        return self.below[-1]


def draw_tree(root: Branch, width: int) -> list[str]:
    """A tree with guides; a label that does not fit continues below its beginning."""
    return _draw_branch(root, max(width, 40), "", "")


def _draw_branch(branch: Branch, width: int, first: str, rest: str) -> list[str]:
    lines = wrap(escape_text(branch.label), width, first, rest)  # escaped before: names of others may hold line breaks
    for one in branch.below:
        fork, guide = ("└── ", "    ") if one is branch.below[-1] else ("├── ", "│   ")
        lines += _draw_branch(one, width, rest + fork, rest + guide)
    return lines


def render_warnings(
    warnings: Iterable[str], width: int, first: str = "! ", *, shown: Iterable[str | None] = ()
) -> list[str]:
    """Each warning as a paragraph of its own, without those that repeat an error already shown on the page."""
    errors = [error for error in shown if error]
    fresh = (warning for warning in warnings if not any(error in warning for error in errors))
    return [line for warning in fresh for line in wrap(warning, width, first)]


def render_next(*commands: str) -> list[str]:
    """The next commands, unbroken whatever their length."""
    told = [command for command in commands if command]
    return [f"next: {told[0]}", *(f"      {command}" for command in told[1:])] if told else []
