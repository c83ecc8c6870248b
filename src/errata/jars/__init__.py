"""The pinned jars that Spark needs, and the user cache that holds them.

``jars.toml`` lists every jar by coordinate and SHA-256, grouped by use and, where they differ, by version of Spark:
the pyspark that is installed decides. Only ``fetch_jars`` downloads: it runs in ``errata jars fetch`` and ``make
setup``, never during a plan or a run. ``require_jars`` returns verified paths for the Spark session and never
downloads. A run manifest records the digests, and ``require_sealed_jars`` refuses to compute with others.
``find_required_groups`` is the only place that decides which groups a project needs.

Never starts Spark.
"""

from errata.jars.fetch import fetch_jars
from errata.jars.lane import find_installed_spark, find_sealed_lane
from errata.jars.required import find_required_groups
from errata.jars.sealed import require_sealed_jars
from errata.jars.store import Jar, default_cache_dir, list_jars, load_jar_groups, load_lanes, require_jars

__all__ = [
    "Jar",
    "default_cache_dir",
    "fetch_jars",
    "find_installed_spark",
    "find_required_groups",
    "find_sealed_lane",
    "list_jars",
    "load_jar_groups",
    "load_lanes",
    "require_jars",
    "require_sealed_jars",
]
