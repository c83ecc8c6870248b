"""Copies in Snowflake keep the contract of their port, on the emulator."""

from __future__ import annotations

import pytest

from copies.snowflake_subject import SnowflakeSubject
from errata.testing.contracts import CopyContract
from support.fakesnow import FakeSnowflake


class TestSnowflake(CopyContract):
    """fakesnow with what copies need; tests/unit/engines/copies asserts the statements that it cannot judge."""

    @pytest.fixture
    def copy_subject(self, fakesnow: FakeSnowflake, snowflake_database: str) -> SnowflakeSubject:
        """An empty copy."""
        return SnowflakeSubject(fakesnow, snowflake_database)
