"""The pinned Java archives that Spark needs, and the user cache that holds them.

``jars.toml`` names every archive by coordinate and SHA-256, grouped by use. ``fetch`` is the only thing that downloads:
it runs in ``errata jars fetch`` and ``make setup``, never while a plan or a run is under way. ``require`` hands
verified paths to the Spark session and never downloads. The digests are what a run manifest records.

``groups_for`` says which groups a project needs: the only place that decides it.

It does not start Spark.
"""

from errata.jars.fetch import fetch_jars
from errata.jars.required import find_required_groups
from errata.jars.store import Jar, default_cache_dir, list_jars, load_jar_groups, require_jars

__all__ = [
    "Jar",
    "default_cache_dir",
    "fetch_jars",
    "find_required_groups",
    "list_jars",
    "load_jar_groups",
    "require_jars",
]
