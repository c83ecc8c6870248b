"""Planted secrets and classified values on the way to consumers: every channel and every kind of refresh, as it works
and as it fails, and a search through everything that was sent, said and kept."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from errata.cli.app.session import CliEnvironment as Outside
from errata.cli.main import main
from errata.client import Client
from errata.delivery.payment import pay
from errata.engines.channels.sender import ChannelSender
from errata.engines.consumers.postgres_database import PostgresWatermarks
from errata.engines.consumers.systems import DeclaredSystems
from errata.evidence.keys import generate_key_pair
from errata.ledger import Ledger
from errata.model.audit import Actor
from errata.model.consumer.outbox import ItemState
from errata.model.product import Project
from errata.testing.memory_engines import MemoryEngines
from errata.wiring import build_client, open_workspace
from security.test_secrets import spellings
from support.clock import Clock, stopped_clock
from support.http_receiver import HttpReceiver
from support.mail_server import MailServer
from support.memory_world import MemoryWorld, build
from support.postgres import PostgresServer
from support.redis import RedisServer
from support.world import PRODUCT, PRODUCT_FILE

ANA = Actor("ana", "ana", "host")
ACCOUNT = "c4nary-account-of-a-person"
PROJECT = """
evidence: {key: KEY}
logging: {file: .errata/errata.jsonl}
channels:
  slack: {slack: "${SLACK_HOOK}"}
  hook: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}
  mail: {email: {smtp: "smtp://errata:${MAIL_PASSWORD}@127.0.0.1:MAIL", from: e@x.example, to: [desk@x.example]}}
  log: {file: messages.jsonl}
  pager: {command: [sh, -c, 'cat; echo "$0" >&2; exit 3', "${PAGER_TOKEN}"]}
  dead: {webhook: {url: "${DEAD_URL}"}}
warehouses:
  pg: {type: postgres, uri: "${DATABASE}"}
consumers:
  on-slack: {reads: [fin.sales], tell: {channel: slack, on: EVERYTHING}}
  on-hook: {reads: [fin.sales], tell: {channel: hook, on: EVERYTHING}}
  on-pager: {reads: [fin.sales], tell: {channel: pager, on: EVERYTHING}}
  on-dead: {reads: [fin.sales], tell: {channel: dead, on: EVERYTHING}}
  cached:
    reads: [fin.sales]
    tell: {channel: mail, on: EVERYTHING}
    refresh: [{redis: "${CACHE}", delete: "rev:{partition}:*"}]
    recover_within: 1min
  quoting:
    reads: [fin.sales]
    tell: {channel: log, on: EVERYTHING}
    refresh: [{sql: "SELECT CAST(account AS integer) FROM shown", on: pg}]
  lying:
    reads: [fin.sales]
    tell: {channel: log, on: EVERYTHING}
    verify: {sql: "SELECT gross FROM shown WHERE day = '{partition}'", on: pg, equals: sum(gross)}
  naming:
    reads: [fin.sales]
    tell: {channel: log, on: EVERYTHING}
    verify: {sql: "SELECT account FROM shown WHERE day = '{partition}'", on: pg, equals: sum(n)}
  api:
    reads: [fin.sales]
    tell: {channel: log, on: EVERYTHING}
    refresh: [{http: {url: "${API_URL}", headers: {Authorization: "Bearer ${API_TOKEN}"}}}]
  program:
    reads: [fin.sales]
    tell: {channel: log, on: EVERYTHING}
    refresh: [{command: [sh, -c, 'echo "$0"; exit 4', "${PROGRAM_TOKEN}"]}]
  job:
    reads: [fin.sales]
    kind: watermark
    state: {on: pg, table: etl_state, key: {job: features}, column: high_water}
"""
EVERYTHING = "[planned, approved, published, rolled_back, recovered, failed]"
COMPARED = PRODUCT_FILE + 'compare:\n  - {metric: "sum(gross)", warn: 99%}\nclassified: [account, gross]\n'


class ServedWorld(MemoryWorld):
    """Tables in memory; channels, caches and databases are real."""

    def _build(self, project: Project, ledger: Ledger) -> MemoryEngines:
        engines = super()._build(project, ledger)
        uris = {name: one.uri for name, one in project.warehouses.items()}
        engines.channels = ChannelSender(self.root)  # type: ignore[assignment]
        engines.consumers = DeclaredSystems(self.root, uris)  # type: ignore[assignment]
        engines.watermarks = PostgresWatermarks(uris)  # type: ignore[assignment]
        return engines

    def another_client(self, **options: Any) -> Client:
        told = {"narrate": self.said.append, **options}
        return build_client(open_workspace(self.root, build_engines=self._build, now=self.lake.clock, **told))


@dataclass
class Served:
    """The world, its servers, and what was said."""

    world: ServedWorld
    receiver: HttpReceiver
    mail: MailServer
    secrets: tuple[str, ...]
    clock: Clock
    pages: list[str] = field(default_factory=list)

    def errata(self, *arguments: str, person: str = "bo") -> str:
        out, err = io.StringIO(), io.StringIO()
        outside = Outside(
            open_project=lambda _place, **options: self.world.another_client(**options),
            out=out, err=err, interactive=False, environ={"ERRATA_USER": person, "ERRATA_DEBUG": "1"}, width=100,
        )  # fmt: skip
        main(("-C", str(self.world.root), *arguments), outside)
        self.pages += [out.getvalue(), err.getvalue()]
        return out.getvalue()

    def pay_all(self) -> None:
        """Until every item is paid or failed, or waits for somebody."""
        for _ in range(10):
            pay(self.world.workspace, ANA, seconds=60)
            self.clock.move(700)

    def leaks(self, text: str) -> list[str]:
        return [spelt for one in self.secrets for spelt in spellings(one) if spelt in text]


@pytest.fixture
def served(
    tmp_path: Path, postgres: PostgresServer, cache: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    def plant(_ctx: Any, raw: Any) -> list[dict[str, Any]]:
        return [row | {"account": f"{ACCOUNT}-{row['account']}"} for row in build(_ctx, raw)]

    def refuse(client: Any) -> None:
        """Take what comes for a hook, and refuse everything else with a body that quotes it."""
        post = receiver.posts[-1]
        quoted = f"{post.path} {post.headers} {ACCOUNT}".encode()
        status = b"200 OK" if "/take/" in post.path else b"500 No"
        client.sendall(b"HTTP/1.1 " + status + b"\r\ncontent-length: %d\r\n\r\n" % len(quoted) + quoted)

    generate_key_pair(tmp_path / "key")
    postgres.drop_database("secrets")
    postgres.create_database("secrets")
    receiver = HttpReceiver(refuse)
    with receiver, MailServer(user="errata", password="c4nary mail#p@ss") as mail, stopped_clock() as clock:
        planted = {
            "SLACK_HOOK": f"{receiver.url}/take/c4nary-slack-path",
            "HOOK_URL": f"{receiver.url}/take/c4nary-hook-path",
            "HOOK_SECRET": "c4nary-hook-secret",
            "MAIL_PASSWORD": "c4nary%20mail%23p%40ss",
            "PAGER_TOKEN": "c4nary-pager-token",
            "DEAD_URL": f"{receiver.url}/c4nary-dead-path",
            "DATABASE": f"postgresql://errata:c4nary-database@127.0.0.1:{postgres.port}/secrets",
            "CACHE": f"redis://errata:c4nary-cache@127.0.0.1:{cache.port}/0",
            "API_URL": f"{receiver.url}/c4nary-api-path",
            "API_TOKEN": "c4nary-api-token",
            "PROGRAM_TOKEN": "c4nary-program-token",
        }
        for name, value in planted.items():
            monkeypatch.setenv(name, value)
        text = PROJECT.replace("EVERYTHING", EVERYTHING).replace("MAIL}", "MAIL").replace("KEY", str(tmp_path / "key"))
        text = text.replace("127.0.0.1:MAIL", f"127.0.0.1:{mail.port}")
        world = ServedWorld.make(tmp_path / "world", days=1, project=text, product=COMPARED, transform=plant, rows=1)
        postgres.execute(
            "CREATE TABLE shown (day date, account text, gross numeric)",
            f"INSERT INTO shown VALUES ('{world.days[0]}', '{ACCOUNT}', 8675309.42)",
            "CREATE TABLE etl_state (job text, high_water date)",
            "INSERT INTO etl_state VALUES ('features', '2026-01-20')",
            database="secrets",
        )
        words = [word for value in planted.values() for word in value.replace("@", "/").split("/") if "c4nary" in word]
        secrets = (*(word.removeprefix("errata:") for word in words), "c4nary mail#p@ss")
        yield Served(world, receiver, mail, tuple(dict.fromkeys(secrets)), clock)
        world.client.close()
    postgres.drop_database("secrets")


def test_nothing_that_is_delivered_said_or_kept_has_a_secret_or_a_classified_value(served: Served) -> None:
    """A correction from plan to rollback: messages, headers, pages, JSON, logs, ledger, report and evidence."""
    world = served.world
    run = world.to("validated")
    served.pay_all()
    world.client.publish(run, as_="bo")
    served.pay_all()
    failed = {item.consumer for item in world.ledger.outbox.list(states=[ItemState.FAILED])}
    assert failed >= {"on-pager", "on-dead", "cached", "quoting", "lying", "naming", "api", "program"}
    _look(served, run)
    world.client.rollback(run, reason="not yet", as_="bo")
    served.pay_all()
    for item in world.ledger.outbox.list(states=[ItemState.FAILED])[:2]:
        served.errata("outbox", "waive", str(item.item_id), "--reason", "switched off")
    served.errata("outbox", "retry", "--failed")
    _look(served, run)
    served.errata("evidence", "export", run, "-o", ".errata/run.errata")
    served.errata("report", run, "-o", "report.html")
    _search(served, run)


def _look(served: Served, run: str) -> None:
    for words in (
        ("deliver", run, "--timeout", "1s"), ("status", run), ("outbox", "--all"), ("show", run), ("runbook", run),
        ("consumers", "check", PRODUCT), ("audit", "log"), ("doctor",), ("metrics",),
    ):  # fmt: skip
        served.errata(*words)
        served.errata(*words, "--json")


def _search(served: Served, run: str) -> None:
    world = served.world
    sent = [post.body.decode() for post in served.receiver.posts]
    headers = [json.dumps({**post.headers, "authorization": ""}) for post in served.receiver.posts]
    mails = [str(mail) for mail in served.mail.mails]
    assert len(sent) > 20
    assert {json.loads(body).get("event") for body in sent} >= {"published", "rolled_back"}
    assert any("Not recovered: cached" in one for one in mails)
    values = {str(sum(row[2] for row in rows)) for rows in (world.expected(), world.wrong())} | {"8675309.42"}
    items = [str(item) for item in world.ledger.outbox.list()]
    entries = [str(entry.body) for entry in world.client.audit_log(run) if entry.action.startswith("outbox.")]
    told = [*sent, *headers, *mails, (world.root / "messages.jsonl").read_text(), *items, *entries]
    for text in told:
        assert not [value for value in values if value in text.replace(",", "")], text
    for text in (*told, *served.pages, *world.said):
        assert ACCOUNT not in text
        assert not served.leaks(text), text
    files = [path for path in world.root.rglob("*") if path.is_file() and path.suffix not in (".parquet", ".yaml")]
    assert {"ledger.db", "run.errata", "report.html", "messages.jsonl", "errata.jsonl"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes().decode("latin-1")
        assert ACCOUNT not in content, path
        assert not served.leaks(content), path
    assert served.leaks(str([post.path for post in served.receiver.posts])), "the search itself finds them"
