"""Collect all problems of project files, with file and line. Pure.

A message never contains a value from the environment: what was *found* is always quoted from the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from errata.canonical import to_plain
from errata.errors import ProjectFileError
from errata.project.yaml.tree import MappingNode, Mark, Node, ScalarNode, SequenceNode
from errata.text.secrets import is_secret_name

Path = tuple[str | int, ...]
"""Position in a file: keys and indexes from the top."""


@dataclass(frozen=True, slots=True)
class ProjectProblem:
    """One problem in one file; ``line`` and ``column`` count from 1, ``line`` is None for the file as a whole."""

    file: str
    line: int | None
    column: int | None
    message: str
    key: str = ""
    level: str = "problem"  # or warning, which does not make `errata check` fail

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


def format_path(path: Path) -> str:
    """A position in readable form.

    >>> format_path(("checks", 2, "column"))
    'checks[2].column'
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def is_near(key: str, places: Iterable[Path]) -> bool:
    """Whether a key, in readable form, is one of these positions or lies above or below one.

    >>> is_near("checks[2].column", [("checks", 2)]), is_near("checks", [("checks", 2)]), is_near("", [("checks", 2)])
    (True, True, False)
    """
    return any(
        one == other or other.startswith((f"{one}.", f"{one}["))
        for place in map(format_path, places)
        for one, other in ((key, place), (place, key))
        if key
    )


class ProblemReport:
    """Collects the problems of one file by position."""

    def __init__(self, file: str, root: Node | None = None) -> None:
        self.file = file
        self.root = root
        self.problems: list[ProjectProblem] = []
        self.misread: set[Path] = set()
        """Mappings of which a key could not be read: what else seems wrong there may only follow from that."""

    def at_mark(self, mark: Mark | None, message: str, key: str = "", level: str = "problem") -> None:
        """Add a problem at a known line."""
        line, column = (mark.line, mark.column) if mark else (None, None)
        self.problems.append(ProjectProblem(self.file, line, column, message, key, level))

    def at_key(self, path: Path, message: str) -> None:
        """Add a problem with a key rather than its value."""
        if self.is_misread(path):
            return
        node, mark = self._find(path[:-1])
        if isinstance(node, MappingNode) and path[-1] in node.entries:
            mark = node.entries[str(path[-1])].key_mark
        self.at_mark(mark, message, format_path(path))

    def at(self, path: Path, message: str, *, found: bool = True, level: str = "problem") -> None:
        """Add a problem with the value at a position, or with the nearest enclosing element in the file."""
        node, mark = self._find(path)
        if self.is_misread(path) or (isinstance(node, ScalarNode) and node.unresolved):
            return  # the missing variable, or the key that could not be read, is already reported
        key = format_path(path)
        message = f"{key}: {message}" if key else message
        if found and node is not None and not _is_secret(path, node):
            message += f"; found {node.shown()}"
        self.at_mark(mark, message, key, level)

    def has_problem(self, key: str) -> bool:
        """Whether a problem with this key, in readable form, was added."""
        return any(problem.key == key for problem in self.problems)

    def iterate_texts(self) -> Iterator[tuple[Path, str]]:
        """Every single value of the file as text, with its position."""
        yield from _iterate_texts(self.root, ())

    def is_misread(self, path: Path) -> bool:
        """Whether a key at this position, beside it or below it could not be read."""
        return is_near(format_path(path), self.misread)

    def refuse_repeats(self, items: Iterable[str], path: Path) -> None:
        """Add a problem for each item of a list that was there before."""
        seen: set[str] = set()
        for n, item in enumerate(items):
            if item in seen:
                self.at((*path, n), "given twice")
            seen.add(item)

    def lines(self, sections: Sequence[str]) -> dict[str, int]:
        """Line of each rule in these sections and of each of its keys, by readable position."""
        found: dict[str, int] = {}
        for section in sections:
            listed, _ = self._find((section,))
            if isinstance(listed, MappingNode):
                found |= self._keys((section,), listed)
            for n, item in enumerate(listed.items if isinstance(listed, SequenceNode) else ()):
                found[format_path((section, n))] = item.mark.line
                for key, entry in item.entries.items() if isinstance(item, MappingNode) else ():
                    found[format_path((section, n, key))] = entry.key_mark.line
        return found

    def _keys(self, path: Path, node: MappingNode) -> dict[str, int]:
        found: dict[str, int] = {}
        for key, entry in node.entries.items():
            found[format_path((*path, key))] = entry.key_mark.line
            if isinstance(entry.value, MappingNode):
                found |= self._keys((*path, key), entry.value)
        return found

    def keys_at(self, path: Path) -> set[str]:
        """Keys that the mapping at a position gives a value."""
        node, _ = self._find(path)
        entries = node.entries if isinstance(node, MappingNode) else {}
        return {key for key, entry in entries.items() if getattr(entry.value, "kind", "") != "null"}

    def text_at(self, path: Path) -> str:
        """Text at a position; empty if there is no single value."""
        node, _ = self._find(path)
        return node.text if isinstance(node, ScalarNode) else ""

    def _find(self, path: Path) -> tuple[Node | None, Mark | None]:
        node, mark = self.root, self.root.mark if self.root else None
        for step in path:
            if isinstance(node, MappingNode) and step in node.entries:
                node = node.entries[str(step)].value
            elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                return None, mark
            mark = node.mark
        return node, mark


def _iterate_texts(node: Node | None, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, ScalarNode):
        yield path, node.text
    elif isinstance(node, MappingNode):
        for key, entry in node.entries.items():
            yield from _iterate_texts(entry.value, (*path, key))
    elif isinstance(node, SequenceNode):
        for n, item in enumerate(node.items):
            yield from _iterate_texts(item, (*path, n))


def _is_secret(path: Path, node: Node) -> bool:
    """Whether the value must not be quoted because its key holds a credential, wherever it was written."""
    return (
        isinstance(node, ScalarNode)
        and node.kind != "null"
        and any(isinstance(step, str) and is_secret_name(step) for step in path)
    )


def refuse_problems(problems: Sequence[ProjectProblem]) -> None:
    """Raise one error with all problems; does nothing if there are none."""
    if not problems:
        return
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = "".join(f"\n  {problem}" for problem in problems)
    raise ProjectFileError(
        f"the project files were refused: {count}{lines}",
        state="nothing was changed",
        hint="correct the lines above, then: errata check",
        problems=[to_plain(problem) for problem in problems],
    )
