"""Several processes run one suite: each takes the next test file that no other has taken.

Each begins at a place of its own, so they end together, whatever a file takes, and neighbouring files, which use the
same servers and worlds, mostly meet in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

__all__ = ["add_options", "run_shared"]


def add_options(parser: pytest.Parser) -> None:
    """For ``scripts/test-shared``. Written ``--share=…``: pytest takes a path that stands alone for one with tests."""
    parser.addoption("--share", metavar="DIRECTORY", type=Path, help="run only files that nobody has taken there yet")
    parser.addoption("--last-file-first", action="store_true", help="with --share: begin at the other end")
    parser.addoption("--begin-at", metavar="FOLDER", default="", help="with --share: begin there and go round")


def run_shared(session: pytest.Session) -> bool | None:
    """Run what this process gets; None without ``--share``, for pytest's own loop."""
    directory: Path | None = session.config.getoption("--share")
    if directory is None or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    root = session.config.rootpath
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    if session.config.getoption("--last-file-first"):
        files.reverse()
    begin = root / session.config.getoption("--begin-at")
    # stable: files outside the folder come after it, in their order
    files.sort(key=lambda items: begin not in items[0].path.parents)
    taken = _take(files, directory, root)
    item = next(taken, None)
    while item is not None:
        following = next(taken, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _take(files: Iterable[list[pytest.Item]], directory: Path, root: Path) -> Iterator[pytest.Item]:
    for items in files:
        name = str(items[0].path.relative_to(root)).replace("/", "+")
        try:
            (directory / name).touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from items
