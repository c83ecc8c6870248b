"""Channels, databases and consumers of errata.yaml: what they become, and what is refused."""

from __future__ import annotations

import pytest

from errata.model.consumer.declaration import (
    Channel,
    Consumer,
    Email,
    Hold,
    HttpCall,
    ReadyTable,
    Refresh,
    Tell,
    Verify,
    Warehouse,
    WatermarkState,
    Webhook,
)
from errata.project import load_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_load import problems_of

CHANNELS = """\
channels:
  finance: {slack: "${SLACK_WEBHOOK}"}
  bi: {webhook: {url: "https://bi.example/hook", secret: "${BI_SECRET}"}, timeout: 5s}
  desk: {email: {smtp: "smtps://mail.example", from: errata@x.example, to: [desk@x.example]}}
  log: {file: out/messages.jsonl}
  pager: {command: ["./page.sh", 3]}
"""
WAREHOUSES = 'warehouses:\n  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}\n'
READS = "reads: [fin.daily_revenue]"
FULL = f"""\
{CHANNELS}{WAREHOUSES}\
consumers:
  exec-dashboard:
    owner: bi
    {READS}
    tell: {{channel: finance, on: [planned, published]}}
    hold: {{before: 10min, at_most: 3h, on_timeout: stop}}
    refresh:
      - {{redis: "redis://127.0.0.1:6379/0", delete: "rev:{{partition}}:*"}}
      - {{sql: "REFRESH MATERIALIZED VIEW CONCURRENTLY mv_revenue", on: pg}}
      - {{http: {{url: "https://bi.example/api/refresh?day={{partition}}"}}, timeout: 5s}}
      - {{command: ["./refresh.sh", "--", "{{partition}}"]}}
    refill: 20s
    verify: {{sql: "SELECT sum(v) FROM mv WHERE d = '{{partition}}'", on: pg, equals: sum(v), tolerance: 0.5%}}
    recover_within: 30min
  fraud: {{kind: iceberg-stream, {READS}, checkpoint: "s3://lake/checkpoints/fraud", on_replace: rewind}}
  features:
    kind: watermark
    {READS}
    state: {{on: pg, table: etl_state, key: {{job: features}}, column: high_water}}
ready: {{table: lake.ops.ready}}
"""
ENVIRON = {"SLACK_WEBHOOK": "https://hooks.example/T0/B0/x", "BI_SECRET": "a long secret of BI"}


def consumer(text: str) -> str:
    return f"{CHANNELS}{WAREHOUSES}consumers:\n  x:\n    {READS}\n" + "".join(
        f"    {line}\n" for line in text.split("\n")
    )


def test_every_key_of_channels_and_consumers_has_its_field(write: Write):
    """What the file declares is what commands get; paths are absolute."""
    root = write(also=FULL)
    project = load_project(root, environ=ENVIRON)
    assert project.channels == {
        "finance": Channel("finance", slack=ENVIRON["SLACK_WEBHOOK"]),
        "bi": Channel("bi", webhook=Webhook("https://bi.example/hook", ENVIRON["BI_SECRET"]), timeout_seconds=5),
        "desk": Channel("desk", email=Email("smtps://mail.example", "errata@x.example", ("desk@x.example",))),
        "log": Channel("log", file=str(root / "out" / "messages.jsonl")),
        "pager": Channel("pager", command=("./page.sh", "3")),
    }
    assert [one.kind for one in project.channels.values()] == ["slack", "webhook", "email", "file", "command"]
    assert project.warehouses == {"pg": Warehouse("pg", "postgres", "postgresql://errata@127.0.0.1/bi")}
    assert project.ready == ReadyTable("lake.ops.ready")
    reads = ("fin.daily_revenue",)
    assert project.consumers == {
        "exec-dashboard": Consumer(
            "exec-dashboard",
            reads,
            "bi",
            tell=Tell("finance", ("planned", "published")),
            hold=Hold("stop", 600, 10_800),
            refresh=(
                Refresh(redis="redis://127.0.0.1:6379/0", delete="rev:{partition}:*"),
                Refresh(sql="REFRESH MATERIALIZED VIEW CONCURRENTLY mv_revenue", on="pg"),
                Refresh(http=HttpCall("https://bi.example/api/refresh?day={partition}"), timeout_seconds=5),
                Refresh(command=("./refresh.sh", "--", "{partition}")),
            ),
            refill_seconds=20,
            verify=Verify("sum(v)", "SELECT sum(v) FROM mv WHERE d = '{partition}'", "pg", tolerance="0.5%"),
            recover_within_seconds=1800,
        ),
        "fraud": Consumer(
            "fraud", reads, kind="iceberg-stream", checkpoint="s3://lake/checkpoints/fraud", on_replace="rewind"
        ),
        "features": Consumer(
            "features",
            reads,
            kind="watermark",
            state=WatermarkState("pg", "etl_state", {"job": "features"}, "high_water"),
        ),
    }
    assert [one.name for one in project.list_consumers("fin.daily_revenue")] == ["exec-dashboard", "fraud", "features"]
    assert project.list_consumers("fin.other") == ()


def test_secrets_of_channels_are_in_no_representation(write: Write):
    """An address or a signing secret does not get into a log by printing the project."""
    project = load_project(write(also=FULL), environ=ENVIRON)
    shown = repr((project, project.channels))
    assert not any(secret in shown for secret in ENVIRON.values())
    assert project.redact(f"no answer from {ENVIRON['SLACK_WEBHOOK']}") == "no answer from ${SLACK_WEBHOOK}"


def test_a_project_loads_without_the_secrets_of_its_channels(write: Write):
    """A reader without credentials can look; what needs the variable is found before it is used."""
    project = load_project(write(also=FULL), environ={})
    assert project.unset == {"SLACK_WEBHOOK", "BI_SECRET"}
    assert project.find_unset_variable(project.channels["finance"]) == "SLACK_WEBHOOK"
    assert project.find_unset_variable(project.channels["bi"]) == "BI_SECRET"
    assert project.find_unset_variable(project.channels["log"]) is None
    literal = 'channels:\n  x: {command: ["sh", "-c", "echo $${HOME}"]}\n'
    project = load_project(write(also=literal), environ={})
    assert project.channels["x"].command[-1] == "echo ${HOME}"
    assert project.find_unset_variable(project.channels["x"]) is None


def test_names_in_a_product_file_are_consumers_that_need_nothing(write: Write):
    """The short form adds to what errata.yaml declares, and streaming: makes a stream."""
    project = load_project(
        write(
            extra="consumers: [board report, 'streaming:fraud', y]\n",
            also="consumers:\n  x: {reads: [fin.daily_revenue]}\n  y: {reads: [fin.daily_revenue], owner: bi}\n",
        )
    )
    assert [(one.name, one.kind, one.owner) for one in project.list_consumers("fin.daily_revenue")] == [
        ("x", "reader", ""),
        ("y", "reader", "bi"),
        ("board report", "reader", ""),
        ("streaming:fraud", "iceberg-stream", ""),
    ]


WRONG = {
    "tell: {channel: financ}": (
        'consumers.x.tell.channel: expected a channel of errata.yaml (nearest: "finance"); found "financ"'
    ),
    "tell: {channel: log, on: [published, published]}": 'consumers.x.tell.on[1]: given twice; found "published"',
    "tell: {channel: log, on: [publishd]}": (
        "consumers.x.tell.on[0]: expected one of planned, approved, holding, published, rolled_back, recovered, "
        'failed (nearest: "published"); found "publishd"'
    ),
    "hold: {before: 3h, on_timeout: go}": (
        "consumers.x.hold.at_most: expected at least as long as before, which is the notice that the consumer gets"
    ),
    "hold: {before: 3h, at_most: 2h, on_timeout: go}": (
        "consumers.x.hold.at_most: expected at least as long as before, which is the notice that the consumer "
        'gets; found "2h"'
    ),
    "hold: {acknowledge: true, on_timeout: go}": 'missing key "owner" in consumers.x, whose owner acknowledges',
    "hold: {acknowledge: true, on_timeout: go}\nowner: bl": (
        'consumers.x.owner: nobody could acknowledge; expected a person or a team of people; found "bl"'
    ),
    "hold: {before: 1min}": 'missing key "on_timeout" in consumers.x.hold',
    "refresh: [{timeout: 5s}]": (
        "consumers.x.refresh[0]: expected exactly one of redis, sql, http and command; found none"
    ),
    "refresh: [{redis: 'redis://h', delete: a, command: [b]}]": (
        "consumers.x.refresh[0]: expected exactly one of redis, sql, http and command; found redis and command"
    ),
    "refresh: [{redis: 'redis://h'}]": 'missing key "delete" in consumers.x.refresh[0], which redis needs',
    "refresh: [{redis: 'http://h', delete: a}]": (
        "consumers.x.refresh[0].redis: expected redis://host:6379/0, or rediss:// with TLS"
    ),
    "refresh: [{sql: SELECT 1}]": 'missing key "on" in consumers.x.refresh[0], which sql needs',
    "refresh: [{sql: SELECT 1, on: pq}]": (
        'consumers.x.refresh[0].on: expected a warehouse of errata.yaml with type: postgres; found "pq"'
    ),
    "refresh: [{command: [a], on: pg}]": 'the key "on" belongs to sql in consumers.x.refresh[0]',
    "refresh: [{http: {url: bi.example}}]": (
        'consumers.x.refresh[0].http.url: expected an address that begins with http:// or https://; found "bi.example"'
    ),
    "refresh: [{sql: INSERT INTO wanted SELECT now(), on: pg}]": (
        "consumers.x.refresh[0].sql: expected a statement that may be repeated, such as INSERT … ON CONFLICT: "
        'it is run again after a crash, after refill and while old values are shown; found "INSERT INTO wanted SELECT '
        'now()"'
    ),
    "refill: 5s": 'the key "refill" needs refresh beside it',
    "recover_within: 5min": 'the key "recover_within" needs refresh, verify or state beside it',
    "verify: {redis: 'redis://h', equals: sum(v)}": 'missing key "get" in consumers.x.verify, which redis needs',
    "verify: {redis: 'redis://h', get: total, equals: sum(v)}": (
        "consumers.x.verify: expected {partition} in what is read, because each partition is read by itself"
    ),
    "verify: {redis: 'redis://h', get: 'a:{partition}', field: x, equals: sum(v)}": (
        'the key "field" belongs to http in consumers.x.verify'
    ),
    "checkpoint: s3://x": 'the key "checkpoint" belongs to a consumer with kind: iceberg-stream',
    "state: {on: pg, table: t, key: {a: b}, column: c}": 'the key "state" belongs to a consumer with kind: watermark',
    "kind: watermark": "consumers.x: a watermark consumer needs exactly one of state and rerun",
    "kind: iceberg-stream\non_replace: skip": 'missing key "checkpoint" in consumers.x, which on_replace: skip needs',
    "kind: watermark\nstate: {on: pq, table: t, key: {a: b}, column: c}": (
        'consumers.x.state.on: expected a warehouse of errata.yaml with type: postgres; found "pq"'
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_consumer_is_refused_with_its_line(write: Write, text: str):
    """Each mistake is one problem at its place."""
    assert [one.partition(": ")[2] for one in problems_of(write(also=consumer(text)))] == [WRONG[text]]


VALUES = [
    "SELECT v FROM t WHERE d = '{partition}'",
    "SELECT v FROM t WHERE d = {partition}",
    "SELECT v FROM t WHERE d IN ('{partition}', 'x') AND e BETWEEN CAST('{partition}' AS date) AND now()",
    "SELECT v FROM t WHERE d = '{partition}'::date AND to_char(x, 'YYYY') = '{partition}'",
    "UPDATE t SET stale = true WHERE (d, e) = ('{partition}', 1)",
    "DELETE FROM t WHERE NOT d = '{partition}'",
    "CALL refresh_day('{partition}')",
    "SELECT refresh('{partition}')",
    "INSERT INTO wanted VALUES ('{partition}', 1) ON CONFLICT DO NOTHING",
]
ELSEWHERE = [
    "SELECT v FROM {partition}",
    'SELECT v FROM "{partition}"',
    "SELECT v FROM t_{partition}",
    "SELECT v FROM t WHERE d = 'x{partition}'",
    "SELECT v FROM t WHERE d = '%{partition}%'",
    "SELECT v FROM t WHERE d = 'a''{partition}''b'",
    "SELECT v FROM t WHERE d = ''{partition}''",
    "SELECT v FROM t WHERE d LIKE '{partition}'",
    "SELECT v FROM t WHERE d LIKE '{partition}' || '%'",
    "SELECT v FROM t WHERE d ~ '{partition}'",
    "SELECT v FROM t WHERE d = DATE '{partition}'",
    "SELECT DATE '{partition}'",
    "SELECT v AS {partition} FROM t",
    "SELECT v FROM t -- {partition}",
    "SELECT v /* {partition} */ FROM t",
    "SELECT $q$ {partition} $q$",
    "SELECT E'{partition}'",
    "SELECT v FROM t WHERE d = '{partition}'; DROP TABLE t",
    "SELECT v FROM t WHERE {partition}",
    "SELECT v FROM t ORDER BY {partition}",
    "SELECT {partition}x FROM t",
    "SELECT t.{partition} FROM t",
    "REFRESH MATERIALIZED VIEW {partition}",
    "SELECT v FROM t WHERE d = INTERVAL '{partition}'",
    "SELECT v FROM t WHERE d = '{partition}",
]


@pytest.mark.parametrize("sql", VALUES)
def test_a_partition_may_be_a_value_in_sql(write: Write, sql: str):
    """Where a bound parameter can replace it."""
    root = write(also=consumer(f'refresh: [{{sql: "{sql}", on: pg}}]'))
    assert load_project(root, environ=ENVIRON).consumers["x"].refresh[0].sql == sql


@pytest.mark.parametrize("sql", ELSEWHERE)
def test_a_partition_elsewhere_in_sql_is_refused(write: Write, sql: str):
    """In names, texts, patterns and comments it could become more than a value, or would never be replaced."""
    escaped = sql.replace('"', '\\"')
    [problem] = problems_of(write(also=consumer(f'refresh: [{{sql: "{escaped}", on: pg}}]')))
    assert "consumers.x.refresh[0].sql: expected" in problem
    assert "{partition}" in problem


STRAY = {
    "owner: '{partition}'": "{partition} is refused here",
    "tell: {channel: log}\nrefresh: [{http: {url: 'https://x.example/', headers: {url: '{partition}'}}}]": (
        "is refused here"
    ),
    "refresh: [{redis: 'redis://h/{partition}', delete: x}]": "is refused here",
    "refresh: [{redis: 'redis://h', delete: 'a[{partition}]'}]": "outside brackets",
    "refresh: [{redis: 'redis://h', delete: 'a:{partitions}'}]": "expected {partition}; {partitions} would be left",
    "refresh: [{redis: 'redis://h', delete: 'a:{ partition }'}]": "would be left as it is",
    "refresh: [{http: {url: 'https://{partition}.example/'}}]": "only in its path or as a value of its query",
    "refresh: [{http: {url: 'https://x.example/?{partition}=1'}}]": "only in its path or as a value of its query",
    "refresh: [{command: [a, '--day={partition}']}]": "expected {partition} as a whole argument",
    "refresh: [{command: ['{partition}']}]": "expected {partition} as a whole argument",
    "kind: watermark\nrerun: [a, 'x{partition}']": "expected {partition} as a whole argument",
}


@pytest.mark.parametrize("text", STRAY)
def test_a_partition_elsewhere_in_a_consumer_is_refused(write: Write, text: str):
    """A value from data stays where it is bound, escaped, encoded or one argument."""
    [problem] = problems_of(write(also=consumer(text)))
    assert STRAY[text] in problem


def test_wrong_channels_are_refused_and_show_no_secret(write: Write):
    """Exactly one kind, an address that is one, no password in clear and none in the file."""
    text = """\
channels:
  none: {timeout: 5s}
  two: {file: a, command: [b]}
  place: {webhook: {url: "ftp://x.example"}}
  open: {webhook: {url: "https://x.example/hook", secret: hunter2hunter2}}
  hook: {slack: "https://hooks.slack.com/services/T0/B0/abcdef"}
  far: {file: "s3://bucket/x"}
  mail: {email: {smtp: "http://mail", from: "a b@x", to: [c@x, c@x]}}
  clear: {email: {smtp: "smtp://u:${PASSWORD}@mail.example", from: a@x, to: [c@x]}}
  here: {email: {smtp: "smtp://u:${PASSWORD}@127.0.0.1", from: a@x, to: [c@x]}}
warehouses:
  pg: {type: postgres, uri: "mysql://x"}
ready: {table: lak.ops.ready}
"""
    found = [one.removeprefix("errata.yaml:") for one in problems_of(write(also=text), PASSWORD="open sesame")]
    assert sorted(found) == [
        "10: channels.two: expected exactly one of slack, webhook, email, file and command; found file and command",
        (
            "11: channels.place.webhook.url: expected an address that begins with http:// or https://; found "
            '"ftp://x.example"'
        ),
        (
            "12: channels.open.webhook.secret: this looks like a secret by its name, and would be kept and shown; "
            "write ${NAME} and set the variable"
        ),
        (
            "13: channels.hook.slack: this looks like a Slack token, and would be kept and shown; write ${NAME} "
            "and set the variable"
        ),
        '14: channels.far.file: expected a file on this machine; found "s3://bucket/x"',
        '15: channels.mail.email.from: expected one address such as data@finance.example; found "a b@x"',
        "15: channels.mail.email.smtp: expected smtp://host:25, smtp+starttls://host:587 or smtps://host:465",
        '15: channels.mail.email.to[1]: given twice; found "c@x"',
        "16: channels.clear.email.smtp: smtp:// sends the password in clear; expected smtp+starttls:// or smtps://",
        "19: warehouses.pg.uri: expected postgresql://user:password@host/database",
        '20: ready.table: expected a table of a catalog in errata.yaml (lake); found "lak.ops.ready"',
        "9: channels.none: expected exactly one of slack, webhook, email, file and command; found none",
    ]


def test_what_a_consumer_should_show_is_no_classified_value(write: Write):
    """What it shows and should show goes on record and into messages."""
    shows = "verify: {redis: 'redis://h', get: 'a:{partition}', equals: max(account_id)}"
    [problem] = problems_of(write(also=consumer(shows), extra="classified: [account_id]\n"))
    assert "consumers.x.verify.equals: max() shows a value of a row, and account_id is classified" in problem


def test_consumers_of_unknown_products_are_refused(write: Write):
    """A misspelt product would leave its readers without messages; one that cannot be read is its own problem."""
    text = "consumers:\n  x: {reads: [fin.daily_revenu, fin.daily_revenue]}\nready: {table: lake.fin.daily_revenue}\n"
    assert problems_of(write(also=text)) == [
        (
            "errata.yaml:9: consumers.x.reads[0]: expected a product of the project (nearest: "
            '"fin.daily_revenue"); found "fin.daily_revenu"'
        ),
        (
            "errata.yaml:10: ready.table: it is the target of fin.daily_revenue; expected a table of its own; "
            'found "lake.fin.daily_revenue"'
        ),
    ]
    broken = PRODUCT.replace("owner:", "owner: [")
    assert all(one.startswith("products/") for one in problems_of(write(also=text, product=broken)))


def test_a_watermark_needs_partitions_with_an_order(write: Write):
    """Values have none; a command gets them instead."""
    text = consumer("kind: watermark\nstate: {on: pg, table: t, key: {a: b}, column: c}")
    product = PRODUCT.replace("grain: day", "grain: value")
    assert [one.partition(": ")[2] for one in problems_of(write(also=text, product=product))][-1:] == [
        (
            "consumers.x.state: partitions of fin.daily_revenue have no order, so that a watermark cannot be moved "
            "back; expected rerun"
        )
    ]
