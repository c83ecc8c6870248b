"""Events of the tests, as records of a topic."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)


def record(hours: float, account: str, amount: str, *, partition: int = 0, said: float | None = None) -> dict[str, Any]:
    """One event; ``said`` is the time of its record, in hours, where it is another."""
    at = START + timedelta(hours=hours)
    stamped = START + timedelta(hours=hours if said is None else said)
    value = json.dumps({"account": account, "amount": amount, "at": at.isoformat().replace("+00:00", "Z")})
    return {"value": value, "partition": partition, "timestamp": int(stamped.timestamp() * 1000), "key": account}
