"""Write the files of `errata init`. Writes to the given directory and never overwrites a file."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from importlib import resources
from pathlib import Path

from errata.errors import UsageError

MAKE_LAKE = "make_lake.py"
"""Script of the starter project that creates its lake."""

EMPTY_FILES = {
    "errata.yaml": "errata.yaml",
    ".errata/.gitignore": "gitignore.txt",
}
STARTER_FILES = {
    **EMPTY_FILES,
    "products/daily_sales.yaml": "daily_sales.yaml",
    # stored as text because they belong to the user's project, not to this package
    "transforms/daily_sales.py": "daily_sales.py.txt",
    MAKE_LAKE: "make_lake.py.txt",
    "README.md": "README.md",
}
"""Files of a project, and the templates they come from."""

_NAME = "PROJECT_NAME"
"""Replaced in the templates by the name of the project."""


def write_starter(directory: Path | str, *, empty: bool = False) -> tuple[str, ...]:
    """Write a project and return the names written; refused if any of the files already exists.

    ``empty`` leaves out the sample product and its lake.
    """
    base = Path(directory)
    try:
        return _write_files(base, EMPTY_FILES if empty else STARTER_FILES)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not the name of a directory"
        raise UsageError(f"a project in {base} cannot be written: {why}") from problem


def name_project(directory: str) -> str:
    """The name of a project in a directory of this name.

    >>> name_project("shop"), name_project("Q4 revenue (new)"), name_project("2026"), name_project("")
    ('shop', 'Q4-revenue-new', 'project-2026', 'project')
    """
    words = "-".join(re.findall(r"[A-Za-z0-9_]+", directory))
    return (words if re.match("[A-Za-z]", words) else f"project-{words}".rstrip("-"))[:63]


def format_lake_command() -> str:
    """The command that creates the starter's lake; `python` may be another one, without the packages of Errata."""
    found = shutil.which("python")
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return f"{'python' if is_ours else shlex.quote(sys.executable)} {MAKE_LAKE}"


def _write_files(base: Path, files: dict[str, str]) -> tuple[str, ...]:
    if base.exists() and not base.is_dir():
        raise UsageError(f"{base} was refused; expected a directory; found a file")
    there = [name for name in files if (base / name).exists() or (base / name).is_symlink()]
    if there:
        raise UsageError(
            f"a project in {base} was refused; expected none of its files there; found {', '.join(there)}",
            state="nothing was written",
            hint="errata init OTHER_DIR",
            files=there,
        )
    name = name_project(base.resolve().name)
    templates = resources.files("errata.project") / "templates"
    for file, template in files.items():
        target = base / file
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write((templates / template).read_text(encoding="utf-8").replace(_NAME, name))
    return tuple(files)
