"""Chunks, throttle and health signals of project files, and a product that reads its own output."""

from __future__ import annotations

import pytest

from errata.model.product.throttle import Signal, Throttle
from errata.project import load_project
from unit.project.conftest import PROJECT, Write
from unit.project.test_load import problems_of

FULL = """\
throttle:
  chunks: 2
  cores: 8
  rows_per_minute: 2000000
  bytes_per_minute: 1GiB
  commits_per_hour: 60
  burst: {chunks: 10, pause: 5min}
  hours: ["22:00-06:00", "12:00-24:00"]
  zone: Europe/Berlin
  pool: nightly
"""
HEALTH = """\
health:
  - {name: live-lag, sql: "SELECT max(lag) FROM lag", on: lake, slow_above: 300, pause_above: 900.5, resume_below: 200}
  - {name: api, http: "http://127.0.0.1:8080/health", field: lag_seconds, pause_above: 60, every: 2min, timeout: 5s}
  - {name: queue, command: ["./lag.sh", "--now", 3], slow_above: 10, unreadable: ignore}
"""
OWN = "  previous: {own: true, lookback: 2d}\n"


def test_chunks_aim_at_a_wall_time_unless_their_size_is_given(write: Write):
    """`chunks.bytes` and `chunk_bytes` say the same; a default project has no fixed size."""
    project = load_project(write())
    assert (project.chunk_bytes, project.chunk_seconds, project.attempts) == (None, 120, 5)
    project = load_project(write(also="chunks: {seconds: 300, bytes: 512MiB, attempts: 3}\n"))
    assert (project.chunk_bytes, project.chunk_seconds, project.attempts) == (512 * 2**20, 300, 3)
    assert load_project(write(also="chunk_bytes: 64MiB\n")).chunk_bytes == 64 * 2**20


def test_two_sizes_for_chunks_are_refused(write: Write):
    """Nobody has to guess which of two keys wins."""
    assert problems_of(write(also="chunk_bytes: 64MiB\nchunks: {bytes: 1GiB}\n")) == [
        "errata.yaml:8: chunk_bytes and chunks.bytes were both given; expected chunks.bytes alone"
    ]


def test_a_throttle_says_every_limit(write: Write):
    """Every key of the file has its field."""
    assert load_project(write(also=FULL)).throttle == Throttle(
        chunks=2,
        cores=8,
        rows_per_minute=2_000_000,
        bytes_per_minute=2**30,
        commits_per_hour=60,
        burst=10,
        pause_seconds=300,
        hours=("22:00-06:00", "12:00-24:00"),
        zone="Europe/Berlin",
        pool="nightly",
    )
    assert load_project(write()).throttle == Throttle()


def test_a_product_overrides_the_throttle_key_by_key(write: Write):
    """A product that wants fewer chunks keeps the hours of the project."""
    project = load_project(write(also=FULL, extra="throttle: {chunks: 1, burst: {chunks: 3, pause: 10s}}\n"))
    found = project.products["fin.daily_revenue"].throttle
    assert found is not None
    assert (found.chunks, found.burst, found.pause_seconds) == (1, 3, 10)
    assert (found.cores, found.hours, found.zone) == (8, ("22:00-06:00", "12:00-24:00"), "Europe/Berlin")
    assert load_project(write(also=FULL)).products["fin.daily_revenue"].throttle is None


@pytest.mark.parametrize(
    "line,said",
    [
        ("chunks: 0", "throttle.chunks: expected a whole number from 1; found 0"),
        ("chunk: 2", 'unknown key "chunk" in throttle; nearest valid key: "chunks"'),
        ("burst: {chunks: 3}", 'missing key "pause" in throttle.burst'),
        (
            "burst: {chunks: 3, pause: 5m}",
            'throttle.burst.pause: expected a whole number and s, min, h or d, such as 5min; found "5m"',
        ),
        (
            "burst: {chunks: 3, pause: 0s}",
            'throttle.burst.pause: expected a whole number and s, min, h or d, such as 5min; found "0s"',
        ),
        ("hours: []", "throttle.hours: expected at least 1 entry"),
        (
            'hours: ["22-06"]',
            'throttle.hours[0]: expected hours such as 22:00-06:00; 24:00 may end them; found "22-06"',
        ),
        (
            'hours: ["06:00-06:00"]',
            'throttle.hours[0]: expected hours that end later than they begin; found "06:00-06:00"',
        ),
        (
            'hours: ["00:00-06:00"], zone: Europe/Pari',
            'throttle.zone: expected a time zone such as Europe/Berlin (nearest: "Europe/Paris"); found "Europe/Pari"',
        ),
        ("zone: UTC", 'throttle.zone: a zone needs the key "hours" beside it; found "UTC"'),
    ],
)
def test_a_throttle_is_judged(write: Write, line: str, said: str):
    """Every refusal names the line, what was expected and what was found."""
    assert problems_of(write(also=f"throttle: {{{line}}}\n")) == [f"errata.yaml:8: {said}"]


def test_health_signals_are_read(write: Write):
    """One signal per way of asking; what is not said has its default."""
    assert load_project(write(also=HEALTH)).health == (
        Signal("live-lag", "sql", ("SELECT max(lag) FROM lag",), "lake", None, "300", "900.5", "200"),
        Signal(
            "api",
            "http",
            ("http://127.0.0.1:8080/health",),
            field="lag_seconds",
            pause_above="60",
            every_seconds=120,
            timeout_seconds=5,
        ),
        Signal("queue", "command", ("./lag.sh", "--now", "3"), slow_above="10", unreadable="ignore"),
    )


def test_signals_of_a_product_come_besides_those_of_the_project(write: Write):
    """A product adds signals, and cannot take the name of one that is there."""
    more = 'health:\n  - {name: NAME, command: ["./x"], pause_above: 1}\n'
    project = load_project(write(also=HEALTH, extra=more.replace("NAME", "mine")))
    assert [signal.name for signal in project.products["fin.daily_revenue"].health] == ["mine"]
    assert problems_of(write(also=HEALTH, extra=more.replace("NAME", "api"))) == [
        'products/daily_revenue.yaml:13: health[0].name: expected a unique name; found "api"'
    ]


@pytest.mark.parametrize(
    "line,said",
    [
        ("pause_above: 1", "health[0]: expected exactly one of sql, http and command; found none"),
        (
            'sql: "SELECT 1", command: [x], pause_above: 1',
            "health[0]: expected exactly one of sql, http and command; found sql, command",
        ),
        ("command: [x]", "health[0]: expected slow_above or pause_above or both"),
        (
            "command: [x], pause_above: 10, resume_below: 11",
            "health[0].resume_below: expected no more than pause_above, 10; found 11",
        ),
        (
            "command: [x], pause_above: 10, slow_above: 11",
            "health[0].slow_above: expected no more than pause_above, 10; found 11",
        ),
        (
            "command: [x], slow_above: 10, resume_below: 9",
            'the key "resume_below" needs pause_above beside it',
        ),
        ("command: [x], pause_above: 1, on: lake", 'the key "on" belongs to a signal with sql'),
        ("command: [x], pause_above: 1, field: lag", 'the key "field" belongs to a signal with http'),
        (
            "http: localhost, pause_above: 1",
            'health[0].http: expected an address that begins with http:// or https://; found "localhost"',
        ),
        (
            'sql: "SELECT (1", pause_above: 1',
            'health[0].sql: expected an SQL query; it cannot be parsed; found "SELECT (1"',
        ),
        (
            'sql: "DELETE FROM chunk", pause_above: 1',
            'health[0].sql: expected one SELECT that changes nothing; found "DELETE FROM chunk"',
        ),
        (
            'sql: "SELECT 1; SELECT 2", pause_above: 1',
            'health[0].sql: expected one SELECT that changes nothing; found "SELECT 1; SELECT 2"',
        ),
        ("command: [x], pause_abov: 1", 'unknown key "pause_abov" in health[0]; nearest valid key: "pause_above"'),
        (
            "command: [x], pause_above: 1, every: 30",
            "health[0].every: expected a whole number and s, min, h or d, such as 5min; found 30",
        ),
        (
            "command: [x], pause_above: high",
            'health[0].pause_above: expected a decimal number such as 0.5; found "high"',
        ),
    ],
)
def test_health_signals_are_judged(write: Write, line: str, said: str):
    """A signal that could not be read, or would change something, is refused when the file is read."""
    assert f"errata.yaml:9: {said}" in problems_of(write(also=f"health:\n  - {{name: lag, {line}}}\n"))


def test_two_signals_cannot_share_a_name(write: Write):
    """Every decision names the signal it rests on."""
    one = "  - {name: lag, command: [x], pause_above: 1}\n"
    (said,) = problems_of(write(also=f"health:\n{one}{one}"))
    assert said == 'errata.yaml:10: health[1].name: expected a unique name; found "lag"'


def test_levels_from_the_environment_stay_out_of_messages(write: Write):
    """A message quotes the file, never the value of a variable."""
    text = 'health:\n  - {name: lag, command: [x], pause_above: "${HIGH}", resume_below: 9000}\n'
    (said,) = problems_of(write(project=PROJECT + text), HIGH="8765")
    assert "8765" not in said
    assert "${HIGH}" in said


def test_own_output_is_the_target_itself(write: Write):
    """The input is cut as the target is cut, and says so."""
    product = load_project(write(extra=OWN)).products["fin.daily_revenue"]
    own = product.inputs[1]
    assert (own.own, own.table, own.partition, own.lookback) == (True, "lake.fin.daily_revenue", "business_date", "2d")
    assert not product.inputs[0].own


@pytest.mark.parametrize(
    "line,said",
    [
        ("own: true", "inputs.previous.lookback: own output is what came before: expected at least one day"),
        (
            "own: true, lookback: 0d",
            'inputs.previous.lookback: own output is what came before: expected at least one day; found "0d"',
        ),
        (
            "own: true, lookback: 12h",
            'inputs.previous.lookback: expected whole days or months; found "12h"',
        ),
        (
            "own: true, lookback: 1d, lookahead: 1d",
            'inputs.previous.lookahead: expected 0d, because later partitions are not there yet; found "1d"',
        ),
        (
            "own: true, lookback: 1d, table: lake.a.b",
            'the key "table" was refused in inputs.previous; own output is the target',
        ),
        (
            "own: true, lookback: 1d, partition: business_date",
            'the key "partition" was refused in inputs.previous; own output is the target',
        ),
        ("own: yes, lookback: 1d", 'inputs.previous.own: expected true or false; found "yes"'),
        ("own: false", "inputs.previous: expected one of table, files, recording, kafka and own"),
    ],
)
def test_own_output_is_judged(write: Write, line: str, said: str):
    """A look-back of whole partitions is all that own output takes."""
    assert problems_of(write(extra=f"  previous: {{{line}}}\n")) == [f"products/daily_revenue.yaml:12: {said}"]


def test_own_output_needs_partitions_in_time(write: Write):
    """Values have no order, so nothing comes before anything."""
    root = write(extra="  previous: {own: true, lookback: 1d}\n")
    file = root / "products" / "daily_revenue.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("grain: day", "grain: value"), encoding="utf-8")
    (said,) = problems_of(root)
    assert "own output needs a target by hour, day, month or year" in said


def test_own_output_cannot_be_reconciled(write: Write):
    """A total that must equal itself proves nothing."""
    rule = "reconcile:\n  - {name: total, input: previous, source: sum(a), target: sum(a)}\n"
    (said,) = problems_of(write(extra=OWN + rule))
    assert said.startswith("products/daily_revenue.yaml:14: reconcile[0].input: own output cannot be reconciled")


def test_a_product_may_ask_for_a_proof_of_determinism(write: Write):
    """The number of sample chunks is a whole number from one; nothing is proved unless asked for."""
    assert load_project(write()).products["fin.daily_revenue"].prove_determinism == 0
    proving = load_project(write(extra="determinism: {prove: 3}\n"))
    assert proving.products["fin.daily_revenue"].prove_determinism == 3
    (said,) = problems_of(write(extra="determinism: {prove: 0}\n"))
    assert said.endswith("determinism.prove: expected a whole number from 1; found 0")
