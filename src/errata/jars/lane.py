"""Decide for which Spark jars are chosen: the minor version of the pyspark that is installed.

Each minor version for which the jar list has an Iceberg runtime is a lane. An Iceberg runtime works with the one Spark
that it was built for, so that there is no nearest lane to fall back to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from errata.errors import SetupError

_VERSION = re.compile(r"""^__version__[^=\n]*=\s*["']([^"']+)""", re.MULTILINE)
_RUNTIME = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_[\d.]+[-:]([\d.]+\d)")


def find_installed_spark() -> str | None:
    """Version of the pyspark that this process uses, or would; None if there is none. Does not import it.

    It is read from the module that an import would find. What pip knows is not asked: a driver that ``spark-submit``
    started finds the cluster's pyspark first, of which pip knows nothing.
    """
    found = find_spec("pyspark")
    read = getattr(found and found.loader, "get_data", None)  # of a directory, or of the zip that clusters have
    if found is None or found.origin is None or read is None:
        return None
    with suppress(OSError):
        if told := _VERSION.search(read(str(Path(found.origin).with_name("version.py"))).decode()):
            return told.group(1)
    return None


def choose_lane(installed: str | None, lanes: Sequence[str]) -> str:
    """The lane of this pyspark; without pyspark the first one, whose Spark an installation gets by default.

    >>> choose_lane("4.0.5", ("4.1", "4.0")), choose_lane(None, ("4.1", "4.0"))
    ('4.0', '4.1')
    """
    if installed is None:
        return lanes[0]
    minor = read_minor(installed)
    if minor not in lanes:
        raise SetupError(
            f"pyspark {installed} is installed; Errata has jars for Spark {' and '.join(sorted(lanes))}",
            hint=f"pip install {format_requirement(lanes[0])}",
            found=installed,
            lanes=list(lanes),
        )
    return minor


def read_minor(version_text: str) -> str:
    """Major and minor number of a version.

    >>> read_minor("4.0.5"), read_minor("4.0.2-amzn-0")
    ('4.0', '4.0')
    """
    return ".".join(version_text.split(".")[:2])


def format_requirement(lane: str) -> str:
    """What pip installs for a lane.

    >>> format_requirement("4.0")
    "'pyspark==4.0.*'"
    """
    return f"'pyspark=={lane}.*'"


def find_sealed_lane(coordinates: Iterable[str]) -> tuple[str, str] | None:
    """Spark and Iceberg that some jars are for, by coordinate or file name; None without an Iceberg runtime.

    >>> find_sealed_lane(["org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1"])
    ('4.0', '1.10.1')
    >>> find_sealed_lane(["iceberg-spark-runtime-4.1_2.13-1.11.0.jar"])
    ('4.1', '1.11.0')
    """
    matches = (_RUNTIME.search(one) for one in coordinates)
    return next(((found.group(1), found.group(2)) for found in matches if found), None)
