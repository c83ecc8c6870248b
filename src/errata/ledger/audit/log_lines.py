"""Log lines of audit entries: every change that this process made is a line, written after its commit.

A body may have names, reasons and messages, so only keys that hold ids, codes and counts are taken over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from errata import logs
from errata.model.audit import AuditEntry

_TAKEN = {
    "chunk": "chunk_id", "fence": "fence", "rows": "rows", "files": "files", "bytes": "bytes", "wave": "wave",
    "snapshot_id": "snapshot_id", "signal": "signal", "reading": "reading", "item": "item", "effect": "effect",
    "consumer": "consumer", "attempted": "attempted", "passed": "passed", "kind": "kind", "publication": "publication",
}  # fmt: skip
_WARNINGS = frozenset({"refused", "STALE_FENCE", "throttle.pause", "cost.capped", "run.rejected", "run.expired"})
_ERRORS = frozenset({"run.failed", "outbox.failed", "manifest.tampered"})


def log_entries(entries: Iterable[AuditEntry]) -> None:
    """Write a line for each of these entries."""
    if not logs.is_on():
        return
    for entry in entries:
        logs.log(entry.action, choose_level(entry.action), **_list_fields(entry))


def choose_level(action: str) -> int:
    """Error: a person has to act. Warning: something did not go as planned, and Errata deals with it.

    >>> logging.getLevelName(choose_level("attempt.lost")), logging.getLevelName(choose_level("chunk.adopted"))
    ('WARNING', 'INFO')
    """
    if action in _ERRORS:
        return logging.ERROR
    if action in _WARNINGS or action.endswith((".lost", ".failed", ".quarantined")):
        return logging.WARNING
    return logging.INFO


def _list_fields(entry: AuditEntry) -> dict[str, Any]:
    fields: dict[str, Any] = {"run_id": entry.run_id, "seq": entry.seq}
    for key, name in _TAKEN.items():
        value = entry.body.get(key)
        if isinstance(value, str | int | float):
            fields[name] = value
    move = entry.body.get("move")
    if isinstance(move, Mapping):
        fields |= {"from": move.get("from"), "to": move.get("to")}
    # of an attempt the reason is a code; elsewhere it is a sentence
    if entry.action.startswith("attempt.") and isinstance(code := entry.body.get("reason"), str):
        fields["code"] = code
    return fields
