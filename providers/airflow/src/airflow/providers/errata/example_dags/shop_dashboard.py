"""A consumer: it runs when a correction was published, for exactly the days that changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.providers.errata.assets import build_asset
from airflow.sdk import dag, task

SALES = build_asset("shop.daily_sales")


@dag(schedule=[SALES], start_date=datetime(2026, 1, 1, tzinfo=UTC), tags=["errata"])
def shop_dashboard() -> None:
    """Refresh what the dashboard shows."""

    @task
    def refresh(triggering_asset_events: Any = None) -> list[str]:
        changed = [event.extra for events in (triggering_asset_events or {}).values() for event in events]
        return [f"{one['first']}..{one['last']} at snapshot {one['snapshot_id']}" for one in changed]

    refresh()


shop_dashboard()
