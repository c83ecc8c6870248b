"""Spark masters, and what a cap on cores means for each. Pure.

The cap is ``throttle.cores``: the most cores that one Spark application, that is one worker, may hold. Settings that
are already present are lowered, never raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,(\d+))?\])?")
_DYNAMIC = "spark.dynamicAllocation.maxExecutors"
_INSTANCES = "spark.executor.instances"
_EACH = "spark.executor.cores"
_TOTAL = "spark.cores.max"


def classify_master(master: str) -> str:
    """Kind of master: ``local``, ``standalone``, ``yarn`` or ``kubernetes``; any other is returned as it is.

    >>> [classify_master(m) for m in ("local[4]", "spark://a:7077,b:7077", "yarn", "k8s://https://api:6443")]
    ['local', 'standalone', 'yarn', 'kubernetes']
    """
    if _LOCAL.fullmatch(master):
        return "local"
    scheme = master.partition("://")[0]
    return {"spark": "standalone", "local-cluster": "standalone", "k8s": "kubernetes"}.get(scheme, scheme)


def cap_master(master: str, cores: int | None, available: int) -> str:
    """A local master with at most ``cores`` threads; other masters are unchanged, because their cap is a setting.

    >>> cap_master("local[*]", 2, 8), cap_master("local[2,4]", 6, 8), cap_master("yarn", 2, 8)
    ('local[2]', 'local[2,4]', 'yarn')
    """
    found = _LOCAL.fullmatch(master)
    if not found or cores is None:
        return master
    threads = {None: 1, "*": available}.get(found[1])
    threads = int(found[1]) if threads is None else threads
    retries = f",{found[2]}" if found[2] else ""
    return f"local[{min(threads, cores)}{retries}]" if threads > cores else master


def build_core_settings(kind: str, cores: int | None, conf: Mapping[str, str]) -> dict[str, str]:
    """Settings that hold one application to its cap; empty without a cap or on a local master.

    On YARN and Kubernetes the cap counts executors of a known size. Both settings for their number are given, because
    the cluster's own defaults decide whether allocation is dynamic, and Errata cannot see them.

    >>> build_core_settings("standalone", 8, {"spark.cores.max": "4"})
    {'spark.cores.max': '4'}
    >>> build_core_settings("yarn", 8, {"spark.executor.cores": "4"})
    {'spark.executor.cores': '4', 'spark.dynamicAllocation.maxExecutors': '2', 'spark.executor.instances': '2'}
    """
    if cores is None or kind == "local":
        return {}
    each = _parse_number(conf, _EACH)
    if kind == "standalone":
        # an executor larger than the cap would never be granted, and the application would wait for ever
        small = {_EACH: str(cores)} if each is not None and each > cores else {}
        return small | {_TOTAL: str(_least(cores, _parse_number(conf, _TOTAL)))}
    size = min(each or 1, cores)
    counted = {key: str(_least(cores // size, _parse_number(conf, key))) for key in (_DYNAMIC, _INSTANCES)}
    return {_EACH: str(size)} | counted


def _parse_number(conf: Mapping[str, str], key: str) -> int | None:
    text = conf.get(key, "").strip()
    return int(text) if text.isdecimal() else None


def _least(limit: int, given: int | None) -> int:
    return limit if given is None else min(limit, given)
