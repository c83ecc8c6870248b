"""Write the starter project of `errata init`. Writes to the given directory and never overwrites a file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from errata.errors import UsageError

STARTER_FILES = {
    "errata.yaml": "errata.yaml",
    "products/daily_sales.yaml": "daily_sales.yaml",
    # stored as text because they belong to the user's project, not to this package
    "transforms/daily_sales.py": "daily_sales.py.txt",
    "make_lake.py": "make_lake.py.txt",
    "README.md": "README.md",
    ".errata/.gitignore": "gitignore.txt",
}


def write_starter(directory: Path | str) -> tuple[str, ...]:
    """Write the starter project and return the names written; refused if any of the files already exists."""
    base = Path(directory)
    try:
        return _write_files(base)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not the name of a directory"
        raise UsageError(f"a starter project in {base} cannot be written: {why}") from problem


def _write_files(base: Path) -> tuple[str, ...]:
    if base.exists() and not base.is_dir():
        raise UsageError(f"{base} was refused; expected a directory; found a file")
    there = [name for name in STARTER_FILES if (base / name).exists() or (base / name).is_symlink()]
    if there:
        raise UsageError(
            f"a starter project in {base} was refused; expected none of its files there; found {', '.join(there)}",
            state="nothing was written",
            hint="errata init OTHER_DIR",
            files=there,
        )
    templates = resources.files("errata.project") / "templates"
    for name, template in STARTER_FILES.items():
        target = base / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write((templates / template).read_text(encoding="utf-8"))
    return tuple(STARTER_FILES)
