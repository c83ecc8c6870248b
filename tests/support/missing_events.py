"""A table of events by hour in which some hours lack the views, and two sources that have them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from support.world import World

TABLE, PRODUCT = "lake.fin.events", "raw.events"
HOURS = tuple(f"2026-03-02T{hour:02d}" for hour in range(8, 12))
LOST = HOURS[1:3]
"""Hours whose views were never recorded."""

PRODUCT_FILE = """
product: raw.events
owner: data
target:
  table: lake.fin.events
  partition: {column: ts, grain: hour}
  key: [event_id]
transform: {call: "transforms.events:build", version: 1.0.0}
inputs:
  retry: {table: lake.fin.retry, partition: ts, lookback: 1h, lookahead: 1h}
  api: {table: lake.fin.api, partition: ts, lookback: 1h, lookahead: 1h}
reconstruct:
  id: event_id
  time: ts
  rules:
    - {name: retry-buffer, version: 1, source: retry, identity: [event_id]}
    - name: api-log
      version: 1
      source: api
      match: {on: [user_id, action, object_id], within: 5s}
      key: [request_id]
      confidence: 0.8
checks:
  - {metric: duplicateValues, columns: [event_id], per: run, mustBe: 0}
  - {name: low confidence, metric: expression, expression: "confidence < 0.5", unit: percent, mustBeLessThan: 10}
reconcile:
  - {name: views per order, input: api, source: "count(distinct request_id)", target: "count(*)", tolerance: 100%}
PUBLISH
"""
TRANSFORM = """
from errata import reconstruct


def build(ctx, retry, api):
    return reconstruct.rebuild(ctx, {"retry": retry, "api": api})
"""


def make_events(world: World, publish: str = "") -> None:
    """Add the product, its table and its sources: per hour 6 users see a product; 2 purchases are always recorded."""
    (world.root / "products/events.yaml").write_text(PRODUCT_FILE.replace("PUBLISH", publish))
    (world.root / "transforms/events.py").write_text(TRANSFORM)
    shape = "ts timestamp, user_id string, action string, object_id string"
    origins = "origin string, rule string, rule_version string, confidence decimal(3,2)"
    for name, columns in {
        "events": f"event_id string, {shape}, {origins}",
        "retry": f"event_id string, {shape}",
        "api": f"request_id string, {shape}",
    }.items():
        world.sql(
            f"CREATE TABLE lake.fin.{name} ({columns}) USING iceberg PARTITIONED BY (hours(ts)) "
            "TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='hash', 'commit.retry.num-retries'='30')"
        )
    recorded, retry, api = [], [], []
    for hour in HOURS:
        start = datetime.fromisoformat(f"{hour}:00:00")
        for n in range(6):
            at = start + timedelta(minutes=10 * n)
            view = (at, f"u{n}", "view", f"p{n}")
            if hour not in LOST:
                recorded.append((f"{hour}-{n}", *view))
            elif n < 2:
                retry.append((f"{hour}-{n}", *view))
            api.append((f"req-{hour}-{n}", at + timedelta(seconds=2), *view[1:]))
        recorded += [(f"{hour}-buy{n}", start + timedelta(minutes=n), f"u{n}", "buy", f"p{n}") for n in range(2)]
    _insert(world, "events", recorded, nulls=4)
    _insert(world, "retry", retry)
    _insert(world, "api", api)
    world.client.close()
    world.open()


def _insert(world: World, table: str, rows: list[tuple[Any, ...]], nulls: int = 0) -> None:
    values = ", ".join(
        f"('{name}', timestamp'{at}', '{user}', '{action}', '{what}'{', null' * nulls})"
        for name, at, user, action, what in rows
    )
    world.sql(f"INSERT INTO lake.fin.{table} VALUES {values}")


def append_live(world: World, name: str, at: str, user: str, what: str, action: str = "view") -> None:
    """A late event of the live job."""
    _insert(world, "events", [(name, at, user, action, what)], nulls=4)


def count_origins(world: World, hours: tuple[str, ...] = LOST) -> dict[str, int]:
    """Events of these hours by origin and rule."""
    rows = world.sql(
        f"SELECT coalesce(concat_ws(' ', origin, rule, rule_version), ''), count(*) FROM {TABLE} "
        f"WHERE date_format(ts, \"yyyy-MM-dd'T'HH\") IN ({', '.join(map(repr, hours))}) GROUP BY 1"
    )
    return {row[0]: row[1] for row in rows}


def edit(world: World, old: str, new: str, file: str = "products/events.yaml") -> None:
    """Change a file of the project and open it again."""
    place = world.root / file
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    world.client.close()
    world.open()
