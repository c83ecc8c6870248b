"""Webhooks that get lost and a scan that finds them: the files of the guide, a real HTTP server, Spark and Iceberg."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from errata.errors import PlanRefused, ValidationRejected
from support.guides import list_steps
from support.world import World

Make = Callable[..., World]
PAGE = dict(list_steps("record-a-database.md"))
FIRST, SECOND = "2026-01-01", "2026-01-02"
KEY = "key-of-the-test"


def event(name: str, day: str, amount: str, **more: str) -> dict[str, str]:
    return {"event_id": name, "business_date": day, "amount": amount, **more}


Events = dict[str, list[dict[str, str]]]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Events]]:
    """Its address, and the events that it has by day."""
    monkeypatch.setenv("EVENTS_KEY", KEY)
    events: Events = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            rows = events[query["created_from"][0][:10]]
            body = json.dumps({"data": rows, "total": len(rows)}).encode()
            self.send_response(200 if self.headers["x-api-key"] == KEY else 403)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", events
        server.shutdown()
        thread.join()


def write_hooks(world: World, day: str, *events: dict[str, str]) -> None:
    """What the receiver got on a day."""
    place = world.root / f"landing/hooks/hooks_{day}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(f"{json.dumps(one)}\n" for one in events))


def to_gate(world: World, day: str, **options: Any) -> str:
    plan = world.client.plan("shop.events", partitions=day, reason="lost webhooks", as_="ana", **options)
    world.client.approve(str(plan.id), digest=plan.digest, as_="bo")
    world.client.run(str(plan.id), as_="ana")
    return str(plan.id)


def found(world: World) -> list[tuple[str, str, str, str]]:
    rows = world.spark.sql("SELECT business_date, event_id, amount, origin FROM lake.shop.events").collect()
    return sorted((str(row[0]), row[1], str(row[2]), row[3]) for row in rows)


@pytest.mark.slow
def test_what_webhooks_lost_is_found_by_the_scan(make_world: Make, provider: tuple[str, Events]) -> None:
    """Every event once: the scan wins over webhooks, a lost day is whole, and what loses an event is not published."""
    address, events = provider
    world = make_world(days=1, project=PAGE["errata.yaml"].replace("https://api.example.com", address))
    for name in ("products/events.yaml", "transforms/events.sql"):
        (world.root / name).write_text(PAGE[name])
    world.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    world.sql(
        "CREATE TABLE lake.shop.events (event_id string, business_date date, amount decimal(12,2), origin string) "
        "USING iceberg PARTITIONED BY (business_date)"
    )
    world.client.close()
    world.open()
    at = "2026-01-01T10:00:0{}Z"
    events[FIRST] = [event("e1", FIRST, "1.50"), event("e2", FIRST, "2.00"), event("e3", FIRST, "3.00")]
    events[SECOND] = [event("e4", SECOND, "4.00")]
    write_hooks(
        world, FIRST,
        event("e1", FIRST, "1.00", received_at=at.format(1)),  # the provider corrected it since
        event("e9", FIRST, "9.00", received_at=at.format(2)),  # sent twice, the second time with another amount
        event("e9", FIRST, "9.50", received_at=at.format(3)),
    )  # fmt: skip
    write_hooks(world, SECOND)
    world.client.import_files(str(world.root / "landing/hooks"), "pushed", as_="ana")
    for start, end in ((FIRST, SECOND), (SECOND, "2026-01-03")):
        (done,) = world.client.record("scanned", start=start, end=end, as_="ana").files
        assert done.status == "accepted"
    with pytest.raises(PlanRefused, match=f"pushed: no rows in {SECOND}; they would be computed without it"):
        to_gate(world, f"{FIRST}..{SECOND}")
    run = to_gate(world, f"{FIRST}..{SECOND}", overrides={"empty": "the receiver was down"})
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    right = [
        (FIRST, "e1", "1.50", "scan"), (FIRST, "e2", "2.00", "scan"), (FIRST, "e3", "3.00", "scan"),
        (FIRST, "e9", "9.50", "webhook"), (SECOND, "e4", "4.00", "scan"),
    ]  # fmt: skip
    assert found(world) == right
    assert world.client.stale("shop.events").ok

    events[FIRST].append(event("e5", FIRST, "5.00"))
    (again,) = world.client.record("scanned", start=FIRST, end=SECOND, as_="ana").files
    assert again.supersedes
    assert [one.partition for one in world.client.stale("shop.events").partitions if one.state == "stale"] == [FIRST]

    query = world.root / "transforms/events.sql"
    query.write_text(PAGE["transforms/events.sql"].replace("FROM scanned\n", "FROM scanned WHERE event_id != 'e3'\n"))
    lossy = to_gate(world, FIRST)
    with pytest.raises(ValidationRejected, match="scan"):
        world.client.validate(lossy, as_="ana")
    assert found(world) == right
    query.write_text(PAGE["transforms/events.sql"])
    good = to_gate(world, FIRST, supersede=lossy)
    world.client.validate(good, as_="ana")
    world.client.publish(good, as_="bo")
    assert found(world) == sorted([*right, (FIRST, "e5", "5.00", "scan")])
    assert world.client.stale("shop.events").ok
