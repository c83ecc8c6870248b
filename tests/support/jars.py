"""Jars that only some tests need: fetched once into the user cache; without them those tests are skipped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from errata.errors import SetupError
from errata.jars import default_cache_dir, fetch_jars, list_jars
from errata.jars.store import Jar, parse_jar_list

__all__ = ["EXTRA", "debezium", "kafka_broker", "kafka_connect", "missing", "rest_server", "there"]

EXTRA = ("postgres", "s3", "kafka")
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


def kafka_broker() -> str:
    """The group of the Kafka broker, which no user needs."""
    return "kafka-broker"


def kafka_connect() -> str:
    """The group of Kafka Connect, which no user needs."""
    return "kafka-connect"


def debezium() -> str:
    """The group of Debezium's connector for PostgreSQL, which no user needs."""
    return "debezium"


_LISTS = {
    rest_server(): "rest-jars.toml",
    kafka_broker(): "kafka-jars.toml",
    kafka_connect(): "connect-jars.toml",
    debezium(): "connect-jars.toml",
}


def _jars(group: str) -> tuple[Jar, ...]:
    if group in _LISTS:
        return parse_jar_list(Path(__file__).with_name(_LISTS[group]).read_text("utf-8"))[group]
    return list_jars(group)
