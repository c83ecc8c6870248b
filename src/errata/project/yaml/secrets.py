"""Refuse secrets written out in places that are stored or shown, at their line. Pure.

Product files are copied into run manifests, the ledger and evidence; Spark shows its settings on its own pages;
addresses of channels and consumers are secrets themselves. A secret there must be a reference or stay out. Passwords in
the URLs of the ledger, the catalogs and databases, and S3 keys, reach none of these places and are left to
:func:`list_written_credentials`, so that messages can hide them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from errata.model.product import Project
from errata.project.problems import Path, ProblemReport
from errata.project.yaml.tree import MappingNode, Node, ScalarNode, SequenceNode
from errata.text.secrets import classify_secret, find_passwords, holds_secret, is_secret_name

_REFERENCE = re.compile(r"\$?\$\{[^}]*\}")
_LEAST = 8
"""Shortest password to hide: hiding a shorter one would garble ordinary words in messages."""

SecretRule = Callable[[Path], str]
"""What a position must not hold: ``any`` secret, ``known`` kinds of secret, or unchecked (empty)."""


def rule_for_product(path: Path) -> str:
    """Rule for product files: random-looking text is allowed where it may be the name of a version."""
    match path:
        case ("transform", "config", *_) | ("consumers", *_) | ("health", _, "http" | "command", *_):
            return "any"
        case _:
            return "known"


def rule_for_project(path: Path) -> str:
    """Rule for ``errata.yaml``."""
    match path:
        case ("ledger",) | ("catalogs" | "warehouses", _, "uri") | ("storage", *_):
            return ""
        case ("spark", "conf", *_) | ("health", _, "http" | "command", *_):
            return "any"
        case ("channels", _, "slack" | "webhook" | "email" | "command", *_) | ("consumers", _, *_):
            return "any"
        case _:
            return "known"


def refuse_secrets(root: Node, judge: SecretRule, hint: str, report: ProblemReport) -> None:
    """Report each literal that looks like a secret, without repeating it."""
    _check_node(root, (), judge, hint, report)


def _check_node(node: Node, path: Path, judge: SecretRule, hint: str, report: ProblemReport) -> None:
    match node:
        case MappingNode():
            for key, entry in node.entries.items():
                _check_node(entry.value, (*path, key), judge, hint, report)
        case SequenceNode():
            for index, item in enumerate(node.items):
                _check_node(item, (*path, index), judge, hint, report)
        case ScalarNode():
            kind = _classify_literal(node, path, judge(path))
            if kind:
                report.at(path, f"this looks like {kind}, and would be kept and shown; {hint}", found=False)


def _classify_literal(node: ScalarNode, path: Path, rule: str) -> str | None:
    literal = _REFERENCE.sub("", node.text)
    if not rule or not literal.strip() or node.kind not in ("str", "env"):
        return None
    kind = classify_secret(literal)
    if rule == "known":
        return None if kind == "a random token" else kind
    is_named = any(isinstance(step, str) and holds_secret(step) for step in path)
    return kind or ("a secret by its name" if is_named and literal == node.text else None)


def list_written_credentials(project: Project) -> tuple[str, ...]:
    """Passwords, keys and tokens written out in ``errata.yaml``, which messages must hide as they hide variables."""
    catalogs = project.catalogs.values()
    named = [*project.spark_conf.items(), *(pair for catalog in catalogs for pair in catalog.properties.items())]
    s3 = project.s3
    databases = [one.uri or "" for one in project.warehouses.values()]
    urls = (project.ledger, *(one.uri or "" for one in catalogs), *databases)
    found = [
        *(word for url in urls for word in find_passwords(url)),
        *(value for key, value in named if is_secret_name(key)),
        *((s3.secret_access_key, s3.session_token) if s3 else ()),
    ]
    from_environment = set(project.secrets.values())
    return tuple(
        sorted({word for word in found if word and len(word) >= _LEAST and word not in from_environment}, key=len)
    )
