"""Marks for tests about what only one of the databases has."""

from __future__ import annotations

import pytest

__all__ = ["postgres_only", "sqlite_only"]

sqlite_only = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
postgres_only = pytest.mark.parametrize("url", ["postgres"], indirect=True)
