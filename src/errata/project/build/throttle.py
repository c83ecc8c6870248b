"""Build the throttle and health signals from project files. Pure, except that it reads the time-zone database.

A product's ``throttle`` overrides the project's key by key: a product that wants fewer chunks must not lose the
project's hours. Health signals are added to the project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from errata.model.product.throttle import Signal, Throttle
from errata.project.files import SignalFile, ThrottleFile
from errata.project.problems import Path, ProblemReport
from errata.project.yaml.problem_texts import find_nearest

_KINDS = ("sql", "http", "command")
_BELONGS = {"on": "sql", "field": "http"}


def build_throttle(file: ThrottleFile, report: ProblemReport, base: Throttle | None = None) -> Throttle:
    """The limits, with values from ``base`` for keys that the file leaves out."""
    if file.zone is not None:
        _check_zone(file.zone, report)
        if file.hours is None and not (base and base.hours):
            report.at(("throttle", "zone"), 'a zone needs the key "hours" beside it')
    for n, span in enumerate(file.hours or ()):
        first, _, last = span.partition("-")
        if first == last:
            report.at(("throttle", "hours", n), "expected hours that end later than they begin")
    given = file.model_dump(exclude_none=True, exclude={"wave", "hours"})
    if file.hours is not None:
        given["hours"] = tuple(file.hours)
    if file.wave is not None:
        given |= {"wave": file.wave.chunks, "pause_seconds": file.wave.pause}
    return replace(base or Throttle(), **given)


def build_signals(files: Sequence[SignalFile], report: ProblemReport, taken: Sequence[str] = ()) -> tuple[Signal, ...]:
    """The signals; ``taken`` are names already used by the project."""
    seen = set(taken)
    for n, file in enumerate(files):
        if file.name in seen:
            report.at(("health", n, "name"), "expected a name of its own")
        seen.add(file.name)
    return tuple(_build_signal(("health", n), file, report) for n, file in enumerate(files))


def _build_signal(path: Path, file: SignalFile, report: ProblemReport) -> Signal:
    kinds = [kind for kind in _KINDS if getattr(file, kind) is not None]
    if len(kinds) != 1:
        report.at(
            path, f"expected exactly one of sql, http and command; found {', '.join(kinds) or 'none'}", found=False
        )
    for key, kind in _BELONGS.items():
        if getattr(file, key) is not None and kind not in kinds:
            report.at_key((*path, key), f'the key "{key}" belongs to a signal with {kind}')
    if file.sql is not None:
        _check_query(file.sql, (*path, "sql"), report)
    if file.http is not None:
        _check_address(file.http, (*path, "http"), report)
    _check_levels(file, path, report)
    source = (file.sql,) if file.sql else (file.http,) if file.http else tuple(file.command or ())
    return Signal(
        name=file.name,
        kind=kinds[0] if kinds else "command",
        source=source,
        on=file.on or "ledger",
        field=file.field,
        slow_above=file.slow_above,
        pause_above=file.pause_above,
        resume_below=file.resume_below,
        every_seconds=file.every,
        timeout_seconds=file.timeout,
        unreadable=file.unreadable,
    )


def _check_levels(file: SignalFile, path: Path, report: ProblemReport) -> None:
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
        close = find_nearest(zone, available_timezones())
        hint = f' (nearest: "{close}")' if close else ""
        report.at(("throttle", "zone"), f"expected a time zone such as Europe/Berlin{hint}")


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
