"""Messages about one correction, as the guide shows them."""

from __future__ import annotations

from dataclasses import replace

from errata.model.consumer.message import (
    Difference,
    HoldNotice,
    Message,
    Metric,
    Occasion,
    RecoveryNotice,
    write_message,
)
from errata.model.diff import Movement
from errata.model.partition import Grain, expand_range

RUN = "bf-20260215-daily-revenue-7f3a21c0"
PUBLISHED = Occasion(
    event="published",
    at="2026-02-15T14:02:11+00:00",
    run_id=RUN,
    product="fin.daily_revenue",
    table="lake.fin.daily_revenue",
    grain=Grain.DAY,
    partitions=tuple(expand_range(Grain.DAY, "2026-01-01", "2026-02-15")),
    reason="FX rates were rounded before they were applied",
    requested_by="ana",
    approved_by=("bo",),
    by="bo",
    digest="9be2c0f19be2c0f19be2c0f19be2c0f19be2c0f19be2c0f19be2c0f19be2c0f1",
    snapshot_id="5271846392817364523",
    metrics=(
        Metric("rows", "54000", "54000", "0.00", has_total=True),
        Metric(
            "sum(revenue_usd)",
            "12402511.18",
            "11016842.77",
            "-11.17",
            has_total=True,
            partitions=(
                Movement("2026-01-17", "274341.10", "233211.94", None, "-14.99"),
                Movement("2026-01-18", "268020.55", "229004.11", None, "-14.56"),
                Movement("2026-02-03", "281932.70", "242998.02", None, "-13.81"),
            ),
            more=42,
        ),
    ),
    undo_until="2026-03-17T14:02:11+00:00",
)
EVERYTHING = ("planned", "approved", "holding", "published", "rolled_back", "recovered", "failed")


def build_sample(event: str) -> Message:
    """The message about this event."""
    plain = replace(
        PUBLISHED,
        event=event,
        metrics=(),
        undo_until="",
        snapshot_id=None,
        approved_by=("bo",),
        by="",
        at=_TIMES[event],
    )
    occasion = {
        "planned": replace(plain, approved_by=()),
        "approved": replace(plain, by="bo"),
        "holding": replace(
            plain, hold=HoldNotice("2026-02-15T15:50:00+00:00", f"errata ack {RUN} exec-dashboard", "stop")
        ),
        "published": PUBLISHED,
        "rolled_back": replace(
            plain,
            by="bo",
            reason="January was closed with the old rates",
            partitions=PUBLISHED.partitions[:31],
            snapshot_id="6120457781226483915",
            metrics=(Metric("sum(revenue_usd)", "7581840.10", "8540931.92", "12.65", has_total=True, more=31),),
        ),
        "recovered": replace(plain, recovery=RecoveryNotice(seconds=312, is_read_back=True)),
        "failed": replace(
            plain,
            recovery=RecoveryNotice(
                problem="it still differs after 8 attempts",
                differences=(Difference("2026-01-17", "274341.10", "233211.94"),),
                retry="errata outbox retry 31",
            ),
        ),
    }[event]
    cause = {"planned": RUN, "approved": RUN, "holding": f"{RUN}-h1"}.get(event, f"{RUN}-p1-3fa9c2")
    number = EVERYTHING.index(event) + 1
    return write_message(occasion, "exec-dashboard", f"{cause}/{event}/tell/exec-dashboard", number, EVERYTHING)


_TIMES = {
    "planned": "2026-02-15T09:41:07+00:00",
    "approved": "2026-02-15T10:20:30+00:00",
    "holding": "2026-02-15T13:50:00+00:00",
    "published": "2026-02-15T14:02:11+00:00",
    "rolled_back": "2026-02-16T08:15:42+00:00",
    "recovered": "2026-02-15T14:07:23+00:00",
    "failed": "2026-02-15T14:40:00+00:00",
}
