"""Jars that only some tests need: fetched once into the user cache; without them those tests are skipped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from errata.errors import SetupError
from errata.jars import default_cache_dir, fetch_jars, list_jars
from errata.jars.store import Jar, parse_jar_list

__all__ = ["EXTRA", "missing", "rest_server", "there"]

EXTRA = ("postgres", "s3")
"""Groups of the shipped list that the shared session has besides ``spark``."""


@cache
def missing(group: str) -> str | None:
    """Why this group cannot be had; None when it is there (fetched now, if need be)."""
    try:
        fetch_jars(jars=_jars(group))
    except SetupError as error:
        return f"{error.message}; {error.hint}"
    return None


def there(*groups: str) -> list[Path]:
    """The jars of those groups that can be had."""
    cached = default_cache_dir()
    return [jar.path(cached) for group in groups if missing(group) is None for jar in _jars(group)]


def rest_server() -> str:
    """The group of the REST catalog server, which no user needs."""
    return "rest-server"


def _jars(group: str) -> tuple[Jar, ...]:
    if group == rest_server():
        return parse_jar_list(Path(__file__).with_name("rest-jars.toml").read_text("utf-8"))[group]
    return list_jars(group)
