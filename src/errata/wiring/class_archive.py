"""Build this machine's class archive, next to the jars it is built from."""

from __future__ import annotations

from pathlib import Path

from errata.jars import default_cache_dir, list_jars, load_jar_groups, require_jars


def prepare_archive(*more: str) -> Path:
    """Build the archive for ``spark`` and these jar groups if it does not exist; returns its path.

    Raises ``SetupError`` if it cannot be built.
    """
    from errata.engines.spark.runtime.class_archive import build_archive

    # in the order that projects use, because an archive is valid for one class path only
    wanted = [name for name in load_jar_groups() if name == "spark" or name in more]
    return build_archive(default_cache_dir(), require_jars(jars=list_jars(*wanted)))
