"""The NovaShop example: its shop, its project files, what is missing on a machine, and the whole demo."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.finsight.workshop import ROOT, DemoError
from examples.novashop import independent, servers, shop, workshop

from errata.project import load_project

EXAMPLE = Path(shop.__file__).parent


def test_the_shop_is_the_same_in_every_demo() -> None:
    """The numbers of the documentation are those that everyone gets."""
    told = [(e.event_id, e.ts.isoformat(), e.user_id, e.action, e.product_id) for e in shop.live_monday().truth]
    again = [(e.event_id, e.ts.isoformat(), e.user_id, e.action, e.product_id) for e in shop.live_monday().truth]
    assert told == again
    assert hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16] == "8d7cbe1e992e9ad3"


def test_the_hole_is_where_the_story_says() -> None:
    """Three actions of nine hours, of which one client in twenty still records some; purchases are all there."""
    today = shop.live_monday()
    lost = Counter(e.action for e in today.truth) - Counter(e.action for e in today.recorded)
    assert set(lost) == set(shop.DROPPED)
    assert {e.ts.hour for e in set(today.truth) - set(today.recorded)} == set(shop.LOST)
    kept = [e for e in today.recorded if e.ts.hour in shop.LOST and e.action in shop.DROPPED]
    assert 0 < len(kept) < len(today.truth) // 10
    assert shop.live_monday(1).recorded == shop.live_monday(1).truth


def test_events_and_their_requests_are_in_one_hour() -> None:
    """So the truth of an hour can be counted by hour, whoever logged it."""
    today = shop.live_monday()
    by_id = {f"r-{event.event_id}": event for event in today.truth}
    for request in today.requests:
        if request.request_id in by_id:
            assert request.ts.hour == by_id[request.request_id].ts.hour


def test_every_version_of_the_rule_is_a_valid_project(tmp_path: Path) -> None:
    """Each has another version, as the guardrail wants it."""
    workshop.lay_out(tmp_path / "shop", "postgresql://nova@127.0.0.1:1/postgres")
    versions = []
    for rule in (workshop.FIRST, workshop.SUBTLE, workshop.RIGHT):
        workshop.release(tmp_path / "shop", rule)
        found = load_project(tmp_path / "shop").products["raw.events"].reconstruct
        assert found is not None
        versions.append({one.name: one.version for one in found.rules}["api-nearest"])
    assert versions == ["1", "2", "3"]


def test_what_the_reader_counts_is_what_happened() -> None:
    """An event too many is twice, one too few is missing."""
    rows = [
        independent.Row(e.event_id, e.hour, e.user_id, e.action, e.product_id, None, None)
        for e in shop.live_monday().truth
    ]
    found = independent.compare(rows)
    assert (found.twice, found.missing, independent.count_repeated_ids(rows)) == (0, 0, 0)
    lost = next(n for n, row in enumerate(rows) if row.hour in independent.LOST)
    changed = independent.compare([*rows[:lost], *rows[lost + 1 :], rows[-1 - lost]])
    assert changed.missing == 1


def test_the_erased_users_did_something_in_every_hour() -> None:
    """So each wave has rows of them to leave out, and one of them bought something."""
    theirs = [event for event in shop.live_monday().truth if event.user_id in shop.ERASED]
    assert {(event.ts.hour, event.user_id) for event in theirs} == {(h, u) for h in shop.HOURS for u in shop.ERASED}
    assert {event.user_id for event in theirs if event.action == "purchase"} == {min(shop.ERASED)}


def test_the_reader_misses_nobody_but_the_erased_users() -> None:
    """A row of them is one too many, and their absence is no hole."""
    rows = [
        independent.Row(e.event_id, e.hour, e.user_id, e.action, e.product_id, None, None)
        for e in shop.live_monday().truth
    ]
    others = [row for row in rows if row.user_id not in shop.ERASED]
    clean = independent.compare(others, shop.ERASED)
    assert (clean.twice, clean.missing) == (0, 0)
    assert independent.compare(rows, shop.ERASED).twice > 0


def test_traces_are_found_in_every_text_of_tables_and_files(tmp_path: Path) -> None:
    """By the whole id, in whatever column, JSON text, line or Parquet file it is."""
    assert independent.count_rows_of(pa.table({"n": [1, 2], "row": ['{"user": "u006"}', "u0061"]}), {"u006"}) == 1
    assert independent.count_rows_of(pa.table({"n": [6]}), {"u006"}) == 0
    (tmp_path / "api.jsonl").write_text('{"user_id": "u006"}\n{"user_id": "u0061"}\n')
    pq.write_table(pa.table({"user_id": ["u007", "u008"]}), tmp_path / "orders.parquet")
    found = [independent.count_file_rows_of(path, shop.ERASED) for path in sorted(tmp_path.iterdir())]
    assert found == [1, 1]


def test_a_directory_that_is_no_demo_is_left_alone(tmp_path: Path) -> None:
    """Nothing of the user's is deleted."""
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(DemoError, match="is not empty and not a demo"):
        workshop.lay_out(tmp_path, "postgresql://x")
    assert (tmp_path / "mine.txt").read_text() == "kept"


def test_a_missing_server_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setattr(servers, "find_spec", lambda _name: None)
    with pytest.raises(DemoError, match="Kafka's client is not installed"), servers.open_broker():
        pass


@pytest.mark.slow
@pytest.mark.spark
def test_the_whole_demo_holds(tmp_path: Path) -> None:
    """Every claim of the last table, on real servers."""
    sys.path.append(str(ROOT / "tests"))
    from support.kafka import find_reason

    if reason := find_reason():
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), "--directory", str(tmp_path / "shop")],
        cwd=ROOT, env=os.environ, text=True, capture_output=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.stdout.count("✓ holds") >= 15
    assert "FAILS" not in done.stdout
