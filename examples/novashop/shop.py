"""What happens in NovaShop: people, requests, orders and retry buffers of some Mondays, the same in every demo. Pure.

A Monday from eight to seven. On the last one, a release of the app stops recording three of four actions from nine to
six; one client in twenty still runs the old release.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOURS = range(8, 19)
LOST = range(9, 18)
WITHOUT_ID = 13
"""The hour in which the gateway logged no ids."""
CONTROL_WEEKS = 4
ERASED = frozenset({"u006", "u007"})
"""Users who ask to be erased while their events are being rebuilt; the first one buys something every hour."""
USERS = 60
DROPPED = ("product_view", "add_to_cart", "checkout_start")
ROUTES = {"product_view": "GET /product", "add_to_cart": "POST /cart", "checkout_start": "POST /checkout"}
PREFETCH = "GET /product?prefetch"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a person did."""

    event_id: str
    ts: datetime
    user_id: str
    action: str
    product_id: str

    @property
    def hour(self) -> str:
        """The name of its partition."""
        return f"{self.ts:%Y-%m-%dT%H}"


@dataclass(frozen=True, slots=True)
class Request:
    """A line of the API log."""

    request_id: str
    client_event_id: str | None
    ts: datetime
    user_id: str
    route: str
    product_id: str


@dataclass(frozen=True, slots=True)
class Monday:
    """One Monday: what happened, what the app recorded, and what others know."""

    truth: tuple[Event, ...]
    recorded: tuple[Event, ...]
    retried: tuple[Event, ...]  # in buffers of clients, delivered late
    late: tuple[Event, ...]  # clients that send them through the stream after all
    requests: tuple[Request, ...]

    @property
    def orders(self) -> list[Event]:
        """Purchases, which the order service has too."""
        return [event for event in self.truth if event.action == "purchase"]


@cache
def live_monday(weeks_ago: int = 0) -> Monday:
    """A Monday; the current one has the hole."""
    chance = random.Random(f"novashop {weeks_ago}")
    day = MONDAY - timedelta(weeks=weeks_ago)
    truth = [event for hour in HOURS for event in _happen(chance, day, hour)]
    has_hole = weeks_ago == 0
    recorded, retried, late, requests = [], [], [], []
    for event in truth:
        is_lost = has_hole and event.ts.hour in LOST and event.action in DROPPED and chance.random() >= 0.05
        if not is_lost:
            recorded.append(event)
        elif chance.random() < 0.2:
            retried.append(event)
        elif chance.random() < 0.01:
            late.append(event)
        requests += _log(chance, event)
    return Monday(tuple(truth), tuple(recorded), tuple(retried), tuple(late), tuple(requests))


def _happen(chance: random.Random, day: datetime, hour: int) -> Iterator[Event]:
    start = day + timedelta(hours=hour)
    for n in range(USERS + chance.randrange(-4, 5)):
        user, at = f"u{n:03d}", start + timedelta(seconds=chance.uniform(60, 2_400))
        has_cart = n % 6 == 0 or chance.random() < 0.4
        steps = ["product_view"] * chance.randrange(2, 5) + ["add_to_cart"] * has_cart
        steps += ["checkout_start", "purchase"] * (n % 6 == 0)
        product = f"p{chance.randrange(40):02d}"
        for place, action in enumerate(steps):
            # the same product is seen again after a while, so that equal events are there to be confused
            at += timedelta(seconds=40 if action == "purchase" else chance.uniform(20, 90))
            yield Event(f"{day:%m%d}-{hour:02d}-{n:03d}-{place}", _whole(at), user, action, product)


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _log(chance: random.Random, event: Event) -> Iterator[Request]:
    if event.action not in ROUTES or (event.action == "checkout_start" and chance.random() < 0.1):
        return  # the gateway lost a tenth of the checkouts; all of them became orders
    at = event.ts + timedelta(milliseconds=chance.randrange(1_200, 2_500))
    given = None if event.ts.hour == WITHOUT_ID else event.event_id
    yield Request(f"r-{event.event_id}", given, at, event.user_id, ROUTES[event.action], event.product_id)
    if event.action == "product_view":
        other = f"p{(int(event.product_id[1:]) + 1) % 40:02d}"
        yield Request(f"f-{event.event_id}", None, at + timedelta(seconds=1), event.user_id, PREFETCH, other)


def live_events(first: int) -> Iterator[Event]:
    """What the app sends while the demo runs: events of the evening, without end."""
    n = first
    while True:
        at = MONDAY + timedelta(hours=20, milliseconds=50 * n)
        yield Event(f"live-{n:06d}", at, f"u{n % USERS:03d}", "product_view", f"p{n % 40:02d}")
        n += 1


def list_lost_hours() -> list[str]:
    """Names of the partitions with the hole."""
    return [f"{MONDAY:%Y-%m-%d}T{hour:02d}" for hour in LOST]


def count_rows(events: Sequence[Event]) -> dict[tuple[str, str, str, str], int]:
    """How often each user did what with which product, by hour."""
    found: dict[tuple[str, str, str, str], int] = {}
    for event in events:
        key = (event.hour, event.user_id, event.action, event.product_id)
        found[key] = found.get(key, 0) + 1
    return found
