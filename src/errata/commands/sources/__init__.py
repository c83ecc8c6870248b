"""Commands for recordings: import files, record windows, list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.commands.sources import adopt, import_, record, recordings, redaction

__all__ = ["adopt", "import_", "record", "recordings", "redaction"]

__getattr__ = build_late_import(__name__, dict.fromkeys(__all__, ""))
