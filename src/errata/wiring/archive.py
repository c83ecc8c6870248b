"""The class archive of this machine, beside the jars it is made of."""

from __future__ import annotations

from pathlib import Path

from errata.jars import default_cache_dir, require

__all__ = ["prepare_archive"]


def prepare_archive() -> Path:
    """Make the archive unless it is there; answers where it is. Raises ``SetupError`` when it cannot be made."""
    from errata.engines.spark.archive import build_archive

    return build_archive(default_cache_dir(), require())
