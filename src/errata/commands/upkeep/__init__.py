"""Commands for auditors and for upkeep: evidence, gaps, erase, note, cleanup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.upkeep import cleanup, erase, erase_redact, erase_where, evidence, gaps, note

__all__ = ["cleanup", "erase", "erase_redact", "erase_where", "evidence", "gaps", "note"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
