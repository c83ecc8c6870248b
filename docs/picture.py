"""Draw the output of a command as a picture, with the colours of a terminal.

``errata -C PROJECT status RUN | python docs/picture.py "errata status RUN" docs/images/status.svg``. The pictures show
`examples/finsight`: the plan of `make demo`, and the run after the rollback of three days.
"""

# ruff: noqa: INP001  run as a file

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from errata.cli.app.console import THEME, SignHighlighter

WIDTH = 88
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Rich's own, without fonts from the network."""


def draw(text: str, title: str) -> str:
    """The text as SVG."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), theme=THEME, highlighter=SignHighlighter(), markup=False,
        emoji=False,
    )  # fmt: skip
    console.print(text.rstrip(), soft_wrap=True)
    return console.export_svg(title=title, code_format=_FORMAT)


if __name__ == "__main__":
    title, place = sys.argv[1:]
    Path(place).write_text(draw(sys.stdin.read(), title), encoding="utf-8")
