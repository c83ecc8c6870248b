"""Replace ``${NAME}`` with the value of an environment variable. Pure: the environment is an argument.

Product files are copied into run manifests, which are stored and shown, so only the locations of data (``table``,
``files``) may use the environment there. ``$${NAME}`` is the literal text ``${NAME}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from errata.project.problems import Path, ProblemReport
from errata.project.yaml.tree import MappingNode, Node, ScalarNode, SequenceNode

_REFERENCE = re.compile(r"(\$?)\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

Allowed = Callable[[Path], bool]


def is_allowed_anywhere(path: Path) -> bool:
    """Rule for ``errata.yaml``: variables are allowed everywhere."""
    return bool(path)


def is_data_location(path: Path) -> bool:
    """Rule for product files: variables are allowed only in locations of data."""
    match path:
        case ("target", "table") | ("inputs", _, "table" | "files"):
            return True
        case _:
            return False


def is_resolved_later(path: Path) -> bool:
    """Whether only some commands need the value, such as a key; others run without the variable."""
    match path:
        case ("evidence", "key" | "subject_key") | ("erasure", "key"):
            return True
        case ("channels", *_) | ("warehouses", *_) | ("sources", *_) | ("kafka", *_) | ("lineage", *_):
            return True
        case ("consumers", _, "refresh" | "verify" | "rerun" | "checkpoint", *_):
            return True
        case _:
            return False


def list_unset_variables(texts: Iterable[tuple[Path, str]], environ: Mapping[str, str]) -> frozenset[str]:
    """Variables that are not set and that only some commands need."""
    return frozenset(
        name
        for path, text in texts
        if is_resolved_later(path)
        for escape, name in _REFERENCE.findall(text)
        if not escape and not environ.get(name)
    )


def resolve_variables(
    root: Node, environ: Mapping[str, str], allowed: Allowed, report: ProblemReport
) -> dict[str, str]:
    """Substitute variables in the tree; returns those that were used, by name."""
    used: dict[str, str] = {}
    _resolve_node(root, (), environ, allowed, report, used)
    return used


def _resolve_node(
    node: Node, path: Path, environ: Mapping[str, str], allowed: Allowed, report: ProblemReport, used: dict[str, str]
) -> None:
    match node:
        case MappingNode():
            for key, entry in node.entries.items():
                _resolve_node(entry.value, (*path, key), environ, allowed, report, used)
        case SequenceNode():
            for index, item in enumerate(node.items):
                _resolve_node(item, (*path, index), environ, allowed, report, used)
        case ScalarNode():
            if "${" in node.text:
                _resolve_scalar(node, path, environ, allowed, report, used)


def _resolve_scalar(
    node: ScalarNode,
    path: Path,
    environ: Mapping[str, str],
    allowed: Allowed,
    report: ProblemReport,
    used: dict[str, str],
) -> None:
    troubles: list[str] = []

    def value_of(found: re.Match[str]) -> str:
        escaped, name = found[1], found[2]
        if escaped:
            return "${" + name + "}"
        if not _NAME.fullmatch(name):
            if allowed(path):
                troubles.append(f"expected the name of an environment variable as ${{NAME}}; found ${{{name}}}")
            return found[0]
        if not allowed(path):
            troubles.append(
                f"${{{name}}} is refused here, because product files are copied into run manifests; "
                "only table and files may take a value from the environment"
            )
            return found[0]
        value = environ.get(name, "")
        if not value and is_resolved_later(path):
            return found[0]
        if not value:
            troubles.append(f"the environment variable {name} is {'empty' if name in environ else 'not set'}")
            return found[0]
        used[name] = value
        node.kind = "env"
        return value

    node.value = _REFERENCE.sub(value_of, node.text)
    for trouble in troubles:
        report.at(path, trouble, found=False)
    node.unresolved = bool(troubles)
