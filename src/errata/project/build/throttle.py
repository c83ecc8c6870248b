"""Build the throttle and health signals from project files. Pure, except that it reads the time-zone database.

A product's ``throttle`` overrides the project's key by key: a product that wants fewer chunks must not lose the
project's hours. Health signals are added to the project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from errata.model.product.throttle import Signal, Throttle
from errata.project.forms import SignalForm, narrow
from errata.project.problems import Path, ProblemReport
from errata.project.yaml.problem_texts import hint_nearest
from errata.project.yaml.value_reader import overlay

_KINDS = ("sql", "http", "command")
_BELONGS = {"on": "sql", "field": "http"}


def build_throttle(file: Throttle, report: ProblemReport, base: Throttle | None = None) -> Throttle:
    """The limits, with values from ``base`` for keys that the file leaves out."""
    if "zone" in report.keys_at(("throttle",)):
        _check_zone(file.zone, report)
        if not file.hours and not (base and base.hours):
            report.at(("throttle", "zone"), 'a zone needs the key "hours" beside it')
    for n, span in enumerate(file.hours):
        first, _, last = span.partition("-")
        if first == last:
            report.at(("throttle", "hours", n), "expected hours that end later than they begin")
    return overlay(base or Throttle(), file, report, ("throttle",))


def build_signals(files: Sequence[SignalForm], report: ProblemReport, taken: Sequence[str] = ()) -> tuple[Signal, ...]:
    """The signals; ``taken`` are names already used by the project."""
    seen = set(taken)
    for n, file in enumerate(files):
        if file.name in seen:
            report.at(("health", n, "name"), "expected a unique name")
        seen.add(file.name)
    return tuple(_build_signal(("health", n), file, report) for n, file in enumerate(files))


def _build_signal(path: Path, file: SignalForm, report: ProblemReport) -> Signal:
    kinds = [kind for kind in _KINDS if getattr(file, kind) is not None]
    if len(kinds) != 1:
        report.at(
            path, f"expected exactly one of sql, http and command; found {', '.join(kinds) or 'none'}", found=False
        )
    given = report.keys_at(path)
    for key, kind in _BELONGS.items():
        if key in given and kind not in kinds:
            report.at_key((*path, key), f'the key "{key}" belongs to a signal with {kind}')
    if file.sql is not None:
        _check_query(file.sql, (*path, "sql"), report)
    if file.http is not None:
        _check_address(file.http, (*path, "http"), report)
    _check_levels(file, path, report)
    source = (file.sql,) if file.sql else (file.http,) if file.http else file.command or ()
    return narrow(Signal, file, kind=kinds[0] if kinds else "command", source=source)


def _check_levels(file: Signal, path: Path, report: ProblemReport) -> None:
    slow, pause, resume = (
        None if text is None else Decimal(text) for text in (file.slow_above, file.pause_above, file.resume_below)
    )
    highest = f"expected no more than pause_above, {report.text_at((*path, 'pause_above'))}"
    if slow is None and pause is None:
        report.at(path, "expected slow_above or pause_above or both", found=False)
    if slow is not None and pause is not None and slow > pause:
        report.at((*path, "slow_above"), highest)
    if resume is None:
        return
    if pause is None:
        report.at_key((*path, "resume_below"), 'the key "resume_below" needs pause_above beside it')
    elif resume > pause:
        report.at((*path, "resume_below"), highest)


def _check_zone(zone: str, report: ProblemReport) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        report.at(
            ("throttle", "zone"),
            f"expected a time zone such as Europe/Berlin{hint_nearest(zone, available_timezones())}",
        )


def _check_address(address: str, path: Path, report: ProblemReport) -> None:
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web:
        report.at(path, "expected an address that begins with http:// or https://")


def _check_query(query: str, path: Path, report: ProblemReport) -> None:
    # imported here because the parser takes a quarter of a second to load, and few projects have SQL signals
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        trees = [tree for tree in sqlglot.parse(query) if tree is not None]
    except SqlglotError:
        report.at(path, "expected an SQL query; it cannot be parsed")
        return
    changes = (exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Into, exp.Command)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query) or trees[0].find(*changes):
        report.at(path, "expected one SELECT that changes nothing")
