"""Values of the context that a SQL transform may use as parameters, such as ``:clock`` or ``:config_NAME``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from errata.model.context import Context

CONTEXT_PARAMETERS = ("clock", "end", "mode", "partitions", "product", "run_id", "start", "version")
"""Fields of the context, each a parameter of its own name."""
INTERVAL_PARAMETERS = frozenset({"start", "end"})
"""Parameters that only partitions by time have."""
_CONFIG = "config_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def list_config_parameters(config: Mapping[str, Any]) -> dict[str, Any]:
    """The parameter of each key of ``transform.config`` that SQL can hold: one value, or a list of values.

    >>> list_config_parameters({"scale": 2, "regions": ["EU", "US"], "nested": {"a": 1}, "no name": 1})
    {'config_scale': 2, 'config_regions': ['EU', 'US']}
    """
    return {f"{_CONFIG}{name}": value for name, value in config.items() if _NAME.fullmatch(name) and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (str, int, float, bool)) for item in value)
    return value is None or isinstance(value, (str, int, float, bool))


def list_parameters(context: Context) -> dict[str, Any]:
    """Every parameter with its value in this context."""
    values: dict[str, Any] = {name: getattr(context, name) for name in CONTEXT_PARAMETERS}
    values |= {"mode": context.mode.value, "partitions": list(context.partitions)}
    return values | list_config_parameters(context.config)
