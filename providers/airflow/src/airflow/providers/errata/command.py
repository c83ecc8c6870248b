"""Builds the argument lists of Errata's commands. Pure.

Values are joined to their options (``--reason=…``), so that no value is ever read as an option.
"""

from __future__ import annotations

from collections.abc import Sequence


def build_plan(
    product: str,
    reason: str,
    *,
    start: str | None = None,
    end: str | None = None,
    partitions: str | None = None,
    stale: bool = False,
    kind: str | None = None,
    canary: str | None = None,
    supersede: str | None = None,
) -> list[str]:
    """``errata plan``.

    >>> build_plan("fin.sales", "late file", start="2026-01-01", end="2026-01-03")
    ['plan', 'fin.sales', '--reason=late file', '--from=2026-01-01', '--to=2026-01-03']
    """
    values = {
        "reason": reason, "from": start, "to": end, "partitions": partitions, "kind": kind, "canary": canary,
        "supersede": supersede,
    }  # fmt: skip
    return ["plan", _name(product), *_options(values), *(["--stale"] if stale else [])]


def build_run(run_id: str, parallel: int) -> list[str]:
    """``errata run``."""
    return ["run", _name(run_id), f"--parallel={parallel}"]


def build_validate(run_id: str) -> list[str]:
    """``errata validate``."""
    return ["validate", _name(run_id)]


def build_publish(run_id: str, partitions: str | None = None, *, wait: bool = True) -> list[str]:
    """``errata publish``; with ``wait``, all waves and for consumers that are held."""
    return ["publish", _name(run_id), *_options({"partitions": partitions}), *(["--wait"] if wait else [])]


def build_rollback(run_id: str, reason: str, partitions: str | None = None) -> list[str]:
    """``errata rollback``."""
    return ["rollback", _name(run_id), *_options({"reason": reason, "partitions": partitions})]


def build_late(product: str | None, parallel: int) -> list[str]:
    """``errata late``."""
    return ["late", *([_name(product)] if product else []), f"--parallel={parallel}"]


def build_status(run_id: str | None = None) -> list[str]:
    """``errata status`` of one run, or of all."""
    return ["status", *([_name(run_id)] if run_id else [])]


def build_report(run_id: str, file: str) -> list[str]:
    """``errata report`` into a file."""
    return ["report", _name(run_id), f"--output={file}"]


def build_pause(run_id: str) -> list[str]:
    """``errata pause``."""
    return ["pause", _name(run_id)]


def build_ready(table: str, partitions: Sequence[str]) -> list[str]:
    """``errata ready``; it looks once, because the sensor waits."""
    return ["ready", _name(table), *(_name(one) for one in partitions)]


def build_live_check(table: str, partitions: str | None) -> list[str]:
    """``errata live check``."""
    return ["live", "check", _name(table), *_options({"partitions": partitions})]


def build_live_write(table: str, partitions: str | None, name: str, program: Sequence[str]) -> list[str]:
    """``errata live write``, which runs a program as long as it has the lease."""
    return ["live", "write", _name(table), *_options({"partitions": partitions, "name": name}), "--", *program]


def _options(values: dict[str, str | None]) -> list[str]:
    return [f"--{option}={value}" for option, value in values.items() if value]


def _name(value: str) -> str:
    """A positional argument, which must not look like an option."""
    if not value or value.startswith("-"):
        raise ValueError(f"{value!r} is not the name of a product, table, partition or run")
    return value
