"""The class archive of this machine, beside the jars it is made of."""

from __future__ import annotations

from pathlib import Path

from errata.jars import default_cache_dir, list_jars, load_jar_groups, require_jars


def prepare_archive(*more: str) -> Path:
    """Make the archive of ``spark`` and these groups unless it is there; answers where it is.

    Raises ``SetupError`` when it cannot be made.
    """
    from errata.engines.spark.runtime.class_archive import build_archive

    # in the order in which a project takes them: an archive holds for one class path
    wanted = [name for name in load_jar_groups() if name == "spark" or name in more]
    return build_archive(default_cache_dir(), require_jars(jars=list_jars(*wanted)))
