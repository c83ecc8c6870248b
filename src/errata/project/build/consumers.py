"""Build channels, databases and consumers from ``errata.yaml``, with the checks that involve several keys. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import urlsplit

from errata.model.consumer.declaration import (
    CHANNEL_KINDS,
    Channel,
    Consumer,
    Email,
    HttpCall,
    Refresh,
    Verify,
    Warehouse,
)
from errata.model.consumer.partition_text import HOLE
from errata.model.product import Person, Product, Project
from errata.project.build.masking import refuse_exposing_aggregate
from errata.project.build.partition_places import (
    check_command,
    check_redis_pattern,
    check_sql,
    check_url,
    refuse_stray_partitions,
)
from errata.project.build.settings import has_scheme, to_absolute
from errata.project.forms import ProjectForm
from errata.project.problems import Path, ProblemReport, format_path
from errata.project.yaml.problem_texts import hint_nearest

STREAMING = "streaming:"
"""In a product file: the consumer of this name is a stream."""
_STEPS = ("redis", "sql", "http", "command")
_REFRESH_KEYS = {"redis": ("delete",), "sql": ("on",)}
_VERIFY_KEYS = {"redis": ("get",), "sql": ("on",)}
_KIND_KEYS = {
    "checkpoint": "iceberg-stream",
    "on_replace": "iceberg-stream",
    "state": "watermark",
    "rerun": "watermark",
}
_WAREHOUSE_KEYS = {
    "postgres": {"uri"},
    "snowflake": {"account", "user", "private_key", "role", "warehouse", "database", "schema", "stage", "host"},
}
_INSERT = re.compile(r"\s*INSERT\b", re.IGNORECASE)
_ON_CONFLICT = re.compile(r"\bON\s+CONFLICT\b", re.IGNORECASE)
_DATABASE = "a warehouse of errata.yaml with type: postgres"
_SMTP = {"smtp": "in clear", "smtp+starttls": "", "smtps": ""}


def build_channels(file: ProjectForm, root: FilePath, report: ProblemReport) -> dict[str, Channel]:
    """Channels by name, each of one kind."""
    return {name: _build_channel(name, given, root, report) for name, given in file.channels.items()}


def _build_channel(name: str, given: Channel, root: FilePath, report: ProblemReport) -> Channel:
    path = ("channels", name)
    require_one(given, CHANNEL_KINDS, path, report)
    if given.slack is not None:
        check_url(given.slack, (*path, "slack"), report)
    if given.webhook is not None:
        check_url(given.webhook.url, (*path, "webhook", "url"), report)
    if given.email is not None:
        _check_email(given.email, (*path, "email"), report)
    if given.file is not None and has_scheme(given.file):
        report.at((*path, "file"), "expected a file on this machine")
    return replace(given, name=name, file=None if given.file is None else to_absolute(root, given.file))


def _check_email(email: Email, path: Path, report: ProblemReport) -> None:
    addresses = [(email.sender, (*path, "from")), *((one, (*path, "to", n)) for n, one in enumerate(email.to))]
    for address, place in addresses:
        if address.count("@") != 1 or any(letter in ' ,;<>"' for letter in address):
            report.at(place, "expected one address such as data@finance.example")
    report.refuse_repeats(email.to, (*path, "to"))
    if "${" in email.smtp:
        return
    try:
        server = urlsplit(email.smtp)
        is_server = server.scheme in _SMTP and bool(server.hostname) and server.port != 0
    except ValueError:
        is_server = False
    if not is_server:
        report.at((*path, "smtp"), "expected smtp://host:25, smtp+starttls://host:587 or smtps://host:465", found=False)
    elif server.password and _SMTP[server.scheme] and not is_loopback(server.hostname or ""):
        report.at(
            (*path, "smtp"), "smtp:// sends the password in clear; expected smtp+starttls:// or smtps://", found=False
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("bi.example")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def build_warehouses(file: ProjectForm, report: ProblemReport) -> dict[str, Warehouse]:
    """Databases by name, each with the keys of its type and no others."""
    for name, given in file.warehouses.items():
        path = ("warehouses", name)
        for kind, keys in _WAREHOUSE_KEYS.items():
            for key in sorted(report.keys_at(path) & keys) if kind != given.type else ():
                report.at_key((*path, key), f'the key "{key}" belongs to a warehouse with type: {kind}')
        for key in sorted(_WAREHOUSE_KEYS[given.type] - {"stage", "host"}):
            if key not in report.keys_at(path):
                report.at_key((*path, key), f'missing key "{key}" in {format_path(path)}, which {given.type} needs')
        uri = given.uri or ""
        if uri and "${" not in uri and not uri.startswith(("postgresql://", "postgres://")):
            report.at((*path, "uri"), "expected postgresql://user:password@host/database", found=False)
    return {name: replace(given, name=name) for name, given in file.warehouses.items()}


def build_consumers(file: ProjectForm, people: Mapping[str, Person], report: ProblemReport) -> dict[str, Consumer]:
    """Consumers by name; whether their products exist is checked once those are read."""
    refuse_stray_partitions(report)
    databases = [name for name, one in file.warehouses.items() if one.type == "postgres"]
    for name, given in file.consumers.items():
        path = ("consumers", name)
        report.refuse_repeats(given.reads, (*path, "reads"))
        if given.tell is not None:
            check_known(
                given.tell.channel, file.channels, (*path, "tell", "channel"), "a channel of errata.yaml", report
            )
            report.refuse_repeats(given.tell.on, (*path, "tell", "on"))
        _check_hold(given, people, path, report)
        _check_kind(given, path, report)
        for n, step in enumerate(given.refresh):
            _check_refresh(step, databases, (*path, "refresh", n), report)
        if given.verify is not None:
            _check_verify(given.verify, databases, (*path, "verify"), report)
        if given.state is not None:
            check_known(given.state.on, databases, (*path, "state", "on"), _DATABASE, report)
        check_command(given.rerun, (*path, "rerun"), report)
        _check_needs(given, path, report)
    return {name: replace(given, name=name) for name, given in file.consumers.items()}


def _check_needs(given: Consumer, path: Path, report: ProblemReport) -> None:
    keys = report.keys_at(path)
    if "refill" in keys and not given.refresh:
        report.at_key((*path, "refill"), 'the key "refill" needs refresh beside it')
    if "recover_within" in keys and not given.refresh and given.verify is None and given.state is None:
        report.at_key((*path, "recover_within"), 'the key "recover_within" needs refresh, verify or state beside it')


def _check_hold(given: Consumer, people: Mapping[str, Person], path: Path, report: ProblemReport) -> None:
    hold = given.hold
    if hold is None:
        return
    if hold.at_most_seconds < hold.before_seconds:
        said = "expected at least as long as before, which is the notice that the consumer gets"
        report.at((*path, "hold", "at_most"), said)
    if not hold.acknowledge:
        return
    known = {*people, *(team for person in people.values() for team in person.teams)}
    if not given.owner:
        report.at_key((*path, "owner"), f'missing key "owner" in {format_path(path)}, whose owner acknowledges')
    elif people and given.owner not in known:
        said = "nobody could acknowledge; expected a person or a team of people"
        report.at((*path, "owner"), f"{said}{hint_nearest(given.owner, known)}")


def _check_kind(given: Consumer, path: Path, report: ProblemReport) -> None:
    for key in sorted(report.keys_at(path) & _KIND_KEYS.keys()):
        if given.kind != _KIND_KEYS[key]:
            report.at_key((*path, key), f'the key "{key}" belongs to a consumer with kind: {_KIND_KEYS[key]}')
    if given.kind == "watermark" and (given.state is None) == (not given.rerun):
        report.at(path, "a watermark consumer needs exactly one of state and rerun", found=False)
    if given.kind == "iceberg-stream" and given.on_replace != "stop" and given.checkpoint is None:
        said = f'missing key "checkpoint" in {format_path(path)}, which on_replace: {given.on_replace} needs'
        report.at_key((*path, "checkpoint"), said)


def _check_refresh(step: Refresh, warehouses: Collection[str], path: Path, report: ProblemReport) -> None:
    require_one(step, _STEPS, path, report)
    _check_step_keys(step, _REFRESH_KEYS, path, report)
    if step.delete is not None:
        check_redis_pattern(step.delete, (*path, "delete"), report)
    if step.sql is not None and _INSERT.match(step.sql) and not _ON_CONFLICT.search(step.sql):
        said = "it is run again after a crash, after refill and while old values are shown"
        report.at((*path, "sql"), f"expected a statement that may be repeated, such as INSERT … ON CONFLICT: {said}")
    _check_step(step, warehouses, path, report)


def _check_verify(verify: Verify, warehouses: Collection[str], path: Path, report: ProblemReport) -> None:
    require_one(verify, _STEPS, path, report)
    _check_step_keys(verify, _VERIFY_KEYS, path, report)
    if "field" in report.keys_at(path) and verify.http is None:
        report.at_key((*path, "field"), f'the key "field" belongs to http in {format_path(path)}')
    _check_step(verify, warehouses, path, report)
    shown = (verify.sql, verify.get, verify.http.url if verify.http else None, *verify.command)
    texts = [text for text in shown if text is not None]
    if texts and not any(HOLE in text for text in texts):
        report.at(path, f"expected {HOLE} in what is read, because each partition is read by itself", found=False)


def _check_step(step: Refresh | Verify, warehouses: Collection[str], path: Path, report: ProblemReport) -> None:
    if step.redis is not None and "${" not in step.redis and not _is_redis(step.redis):
        report.at((*path, "redis"), "expected redis://host:6379/0, or rediss:// with TLS", found=False)
    if step.on is not None and step.sql is not None:
        check_known(step.on, warehouses, (*path, "on"), _DATABASE, report)
    if step.sql is not None:
        check_sql(step.sql, (*path, "sql"), report)
    if isinstance(step.http, HttpCall):
        check_url(step.http.url, (*path, "http", "url"), report)
    check_command(step.command, (*path, "command"), report)


def _is_redis(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_step_keys(step: Any, needs: Mapping[str, Sequence[str]], path: Path, report: ProblemReport) -> None:
    """Report keys that the kind of a step needs and does not have, and those of another kind."""
    given = report.keys_at(path)
    for kind, keys in needs.items():
        has_kind = getattr(step, kind) is not None
        for key in keys:
            if has_kind and getattr(step, key) is None:
                report.at_key((*path, key), f'missing key "{key}" in {format_path(path)}, which {kind} needs')
            elif not has_kind and key in given:
                report.at_key((*path, key), f'the key "{key}" belongs to {kind} in {format_path(path)}')


def require_one(given: Any, kinds: Sequence[str], path: Path, report: ProblemReport) -> None:
    """Report a value that has none of these keys, or several."""
    found = [kind for kind in kinds if getattr(given, kind)]
    if len(found) != 1:
        wanted = f"expected exactly one of {', '.join(kinds[:-1])} and {kinds[-1]}"
        report.at(path, f"{wanted}; found {' and '.join(found) or 'none'}", found=False)


def check_known(name: str, known: Collection[str], path: Path, what: str, report: ProblemReport) -> None:
    """Report a name that is not declared."""
    if name not in known:
        report.at(path, f"expected {what}{hint_nearest(name, known)}")


def check_reads(project: Project, products: Mapping[str, Product], report: ProblemReport) -> None:
    """Report products that are not there or cannot be read incrementally, and a ready table that is something else."""
    for name, consumer in project.consumers.items():
        for n, read in enumerate(consumer.reads):
            check_known(read, products, ("consumers", name, "reads", n), "a product of the project", report)
            if consumer.verify is not None and read in products:
                path = ("consumers", name, "verify", "equals")
                refuse_exposing_aggregate(consumer.verify.equals, products[read].classified, path, report)
            if consumer.state is not None and read in products and not products[read].target.grain.is_time:
                said = f"partitions of {read} have no order, so that a watermark cannot be moved back; expected rerun"
                report.at(("consumers", name, "state"), said, found=False)
    taken = {product.target.table: product.name for product in products.values()}
    if project.ready is not None and project.ready.table in taken:
        said = f"it is the target of {taken[project.ready.table]}; expected a table of its own"
        report.at(("ready", "table"), said)


def merge_named_consumers(declared: Mapping[str, Consumer], products: Iterable[Product]) -> dict[str, Consumer]:
    """All consumers: those of ``errata.yaml``, and names in product files, which read that product and no more.

    ``streaming:NAME`` in a product file is a stream.
    """
    found = dict(declared)
    for product in products:
        for name in product.consumers:
            known = found.get(name)
            if known is None:
                kind = "iceberg-stream" if name.startswith(STREAMING) else "reader"
                found[name] = Consumer(name, (product.name,), kind=kind)
            elif product.name not in known.reads:
                found[name] = replace(known, reads=(*known.reads, product.name))
    return found
