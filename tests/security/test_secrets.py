"""Planted secrets: a canary wherever a credential can stand, and a search through everything that was written."""

from __future__ import annotations

import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

import errata as package
from errata import logs
from errata.cli.app.session import CliEnvironment as Outside
from errata.cli.main import main
from errata.engines.spark.runtime.jvm import public_settings
from errata.errors import EngineError, ErrataError, ProjectFileError
from errata.evidence.keys import generate_key_pair
from errata.model.product import Project
from errata.project import load_project
from errata.text.secrets import classify_secret
from security.conftest import SALES, make_project, make_tables
from security.test_project_files import ERRATA, PRODUCT
from support.jars import missing
from support.lakes import postgres_lake
from support.postgres import PostgresServer, free_port
from support.world import TABLE, World
from unit.cli.sample_client import FakeClient, errata

CANARIES = {
    "CATALOG_PASSWORD": "c4nary:catalog#p@ss word",
    "TOKEN": "c4nary-token-0123456789",
    "HEADER": "c4nary-bearer-abcdefgh",
    "S3_SECRET": "c4naryS3/secret+key==",
    "S3_SESSION": "c4nary-session-" + "x" * 900,
    "SPARK_SECRET": "c4nary-spark-secret",
    "SPARK_PLAIN": "c4nary-spark-plain",
    "HEALTH_TOKEN": "c4nary-health-token",
    "COMMAND_TOKEN": "c4nary-command-token",
    "SHORT": "c4nry7",
}
GOOD = ERRATA.replace("@", "test")
WRITTEN = ("c4nary-written-password", "c4nary-written-property")
"""Spelt out in errata.yaml by someone who did not read the manual: hidden as well."""

PROJECT = f"""
project: test
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {{type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}}
  far:
    type: rest
    uri: "http://lake:${{CATALOG_PASSWORD}}@127.0.0.1:PORT/"
    warehouse: wh
    properties:
      token: "${{TOKEN}}"
      header.Authorization: "Bearer ${{HEADER}}"
      s3.secret-access-key: {WRITTEN[1]}
  old: {{type: jdbc, uri: "postgresql+psycopg://lake:{WRITTEN[0]}@127.0.0.1:PORT/c", warehouse: wh}}
storage:
  s3: {{access_key_id: AKIDX, secret_access_key: "${{S3_SECRET}}", session_token: "${{S3_SESSION}}"}}
spark:
  master: local[1]
  conf:
    spark.hadoop.fs.s3a.secret.key: "${{SPARK_SECRET}}"
    spark.own.setting: "x ${{SPARK_PLAIN}} ${{SHORT}}"
people:
  ana: {{roles: [requester, operator]}}
  bo: {{roles: [approver, publisher]}}
health:
  - {{name: api, http: "http://127.0.0.1:PORT/?key=${{HEALTH_TOKEN}}", pause_above: 1}}
  - {{name: queue, command: ["no-such-program", "${{COMMAND_TOKEN}}"], pause_above: 1}}
logging: {{file: .errata/errata.jsonl}}
lineage: {{http: {{url: "http://127.0.0.1:PORT/${{TOKEN}}", api_key: "${{HEADER}}"}}, timeout: 1s}}
"""


@dataclass
class Planted:
    """A project full of canaries; everything that its commands said."""

    root: Path
    said: list[str]

    def errata(self, *arguments: str, person: str = "ana") -> int:
        out, err = io.StringIO(), io.StringIO()
        environ = {"ERRATA_USER": person, "ERRATA_DEBUG": "1"}
        world = Outside(out=out, err=err, interactive=False, environ=environ, width=100)
        code = main(("-C", str(self.root), *arguments), world)
        self.said += [out.getvalue(), err.getvalue()]
        return code


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    patch = pytest.MonkeyPatch()
    for name, canary in CANARIES.items():
        patch.setenv(name, canary)
    text = PROJECT.replace("PORT", str(free_port()))
    root = make_project(tmp_path_factory.mktemp("planted"), project=text, products={"sales": SALES})
    make_tables(root)
    yield Planted(root, [])
    patch.undo()
    logs.stop()


def spellings(canary: str) -> set[str]:
    """A secret as it may come out: itself, in JSON, in an address."""
    return {canary, json.dumps(canary)[1:-1], quote(canary, safe=""), quote_plus(canary), repr(canary)[1:-1]}


def leaks(text: str) -> list[str]:
    secrets = [*CANARIES.values(), *WRITTEN]
    return [name for canary in secrets for name in spellings(canary) if name in text]


def test_no_command_and_no_file_holds_a_planted_secret(planted: Planted):
    """Manifest, ledger (raw bytes), audit, logs, answers and errors of every command that reads them."""
    run = planted.errata
    assert run("plan", "fin.sales", "--partitions", "2026-01-01", "--reason", "doubled", "--json") == 0
    plan = json.loads(planted.said[-2])
    name, digest = plan["run_id"], plan["manifest_digest"]
    assert run("approve", name, "--digest", digest, person="bo") == 0
    for words in (
        ("show", name), ("show", name, "--manifest"), ("show", name, "--json"), ("status",), ("status", name),
        ("status", name, "--json"), ("why", "lake.fin.sales", "2026-01-01"), ("audit", "verify"), ("audit", "log"),
        ("audit", "log", "--json"), ("metrics",), ("doctor",), ("doctor", "--json"), ("check",), ("check", "--json"),
        ("adopt", "far.fin.sales"), ("adopt", "old.fin.sales"), ("adopt", "far.fin.sales", "--json"),
        ("validate", name), ("diff", name), ("publish", name, "--yes"), ("report", name), ("quarantine", name),
        ("rollback", name, "--reason", "x", "--yes"), ("cleanup", "--dry-run"),
        ("cancel", name, "--reason", "x", "--yes"),
        ("submit", name, "--print", "standalone"), ("submit", name, "--print", "standalone", "--json"),
        ("plan", "fin.nothing", "--partitions", "x", "--reason", "r"), ("run", name),
    ):  # fmt: skip
        run(*words)
        assert not leaks("".join(planted.said)), words
    told = "".join(planted.said)
    assert "could not be opened" in told or "did not answer" in told, "the far catalogs were never asked"
    found = [str(path) for path in planted.root.rglob("*") if path.is_file() and path.name != "errata.yaml"]
    assert {"ledger.db", "errata.jsonl"} <= {Path(path).name for path in found}
    for path in found:
        content = Path(path).read_bytes().decode("latin-1") + Path(path).read_bytes().decode("utf-8", "replace")
        assert not leaks(content), path


def test_a_secret_in_an_error_is_hidden_wherever_the_error_goes(planted: Planted):
    """An engine that quotes addresses and tokens: the ledger keeps ``${NAME}``, and so do screen, JSON and trace."""
    project = load_project(planted.root)
    everything = " ".join([*CANARIES.values(), *WRITTEN])
    error = EngineError(everything, hint=everything, state=everything, deep=[{"why": everything}], flat=everything)
    for raised in (error, RuntimeError(everything)):
        for options in ((), ("--json",)):
            client = FakeClient({"show": raised})
            client.redact = project.redact  # type: ignore[attr-defined]
            result = errata("show", "r", *options, client=client, environ={"ERRATA_DEBUG": "1"})
            assert not leaks(result.out + result.err)
            assert "${TOKEN}" in result.out + result.err


def test_the_ledger_keeps_references(planted: Planted):
    """What is recorded about a failure names the variable; digests and states are never touched by redaction."""
    from errata.model.audit import Actor
    from errata.wiring import build_client, open_workspace

    workspace = open_workspace(planted.root, narrate=lambda _: None)
    with build_client(workspace) as client:
        ledger = workspace.ledger
        body = {"error": f"no route with {CANARIES['TOKEN']}", "list": [{"deep": CANARIES["S3_SECRET"]}]}
        entry = ledger.audit.note(None, Actor("ana", "ana", "h"), "test.noted", body)
        assert entry.body == {"error": "no route with ${TOKEN}", "list": [{"deep": "${S3_SECRET}"}]}
        assert client.audit_verify().ok
    with sqlite3.connect(planted.root / ".errata/ledger.db") as conn:
        assert not leaks("".join(map(str, conn.execute("SELECT body FROM audit").fetchall())))


WORDS = ("planned", "approved", "run.planned", "fin.sales", "2026", "beef", "lake", "state", "from", "ana", "bf-2026")


def test_variables_whose_values_are_ordinary_words_break_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A redacted word may be a state, a year, a person or part of a digest: records keep their meaning."""
    for n, word in enumerate(WORDS):
        monkeypatch.setenv(f"WORD{n}", word)
    listed = " ".join(f"${{WORD{n}}}" for n in range(len(WORDS)))
    text = ERRATA.replace("@", "test") + f'spark: {{conf: {{spark.x: "{listed}"}}}}\n'
    text = text.replace("sqlite:///c.db", "sqlite:///.errata/catalog.db").replace('"wh"', '".errata/warehouse"')
    root = make_project(tmp_path, project=text, products={"sales": SALES})
    make_tables(root)
    with package.open(str(root), narrate=lambda _: None) as client:
        plan = client.plan("fin.sales", partitions="2026-01-01", reason="doubled", as_="ana")
        client.approve(plan.id, digest=plan.digest, as_="bo")
        assert client.status(plan.id).state == "approved"
        assert client.show(plan.id).requested_by == "ana"
        assert client.audit_verify().ok


def test_java_is_started_without_a_secret_on_its_command_line(planted: Planted):
    """By the name of a setting, and by what stands in its value."""
    project = load_project(planted.root)
    from errata.engines.spark.runtime.spark_session import SparkRuntime

    runtime = SparkRuntime(project, (), planted.root / "log")
    settings = public_settings(runtime.settings, runtime.redact)
    assert "spark.master" in settings
    assert not leaks(json.dumps(settings))
    assert leaks(json.dumps(runtime.settings)), "the session itself is given them"


def test_a_loaded_project_shows_none_of_them(planted: Planted):
    """Neither repr nor what is told in place of the settings."""
    project = load_project(planted.root)
    assert not leaks(repr(project) + repr(project.products) + repr(project.catalogs) + repr(project.s3))
    assert project.redact(" ".join(CANARIES.values())).count("${") == len(CANARIES)


@pytest.mark.parametrize(
    "name,text",
    [
        ("products/p.yaml", PRODUCT.replace("2.0.0}", "2.0.0, config: {key: tQ9x2LwZr7Bv0Kc4Hn8Jd3Ym6Fp1GaSu5EoTiR}}")),
        ("products/p.yaml", PRODUCT.replace("2.0.0}", "2.0.0, config: {deep: [{a: {db_password: hunter2}}]}}")),
        ("products/p.yaml", PRODUCT.replace("2.0.0}", "2.0.0, config: {url: 'https://u:hunter2@h/x'}}")),
        ("products/p.yaml", PRODUCT.replace("2.0.0}", "2.0.0, config: {id: AKIAIOSFODNN7EXAMPLE}}")),
        ("products/p.yaml", PRODUCT + "description: |\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIE\n"),
        ("products/p.yaml", PRODUCT + "consumers: ['https://hooks.slack.com/services/T0/B0/abcdef']\n"),
        ("products/p.yaml", PRODUCT + "owner2: x\ndescription: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3.sig\n"),
        ("products/p.yaml", PRODUCT.replace('files: "raw/', 'files: "s3://key:hunter2@bucket/raw/')),
        ("errata.yaml", GOOD + "spark: {conf: {spark.hadoop.fs.s3a.secret.key: hunter2}}\n"),
        ("errata.yaml", GOOD + "spark: {conf: {spark.x: ghp_0123456789abcdefghijABCDEFGHIJ012345}}\n"),
        ("errata.yaml", GOOD + f"health: [{{name: a, command: [x, dapi{'0123456789abcdef' * 2}], pause_above: 1}}]\n"),
        ("errata.yaml", GOOD + "spark: {conf: {spark.driver.extraJavaOptions: '-Dx.password=${P}'}}\n"),
    ],
)  # fmt: skip
def test_a_secret_spelt_out_where_it_would_be_kept_is_refused(tmp_path: Path, name: str, text: str):
    """With file and line, what to do instead, and without repeating it."""
    files = {"errata.yaml": ERRATA.replace("@", "test"), "products/p.yaml": PRODUCT, name: text}
    (tmp_path / "products").mkdir()
    for file, content in files.items():
        (tmp_path / file).write_text(content)
    with pytest.raises(ProjectFileError) as refused:
        load_project(tmp_path, environ={"P": "hunter2"})
    problems = [p for p in refused.value.fields["problems"] if p["file"] == name]
    assert any(
        "looks like" in p["message"] or "refused" in p["message"] or "password" in p["message"] for p in problems
    )
    assert all(p["line"] for p in problems)
    for secret in ("hunter2", "tQ9x2Lw", "IOSFODNN7", "MIIE", "abcdef", "eyJzdWI", "0123456789abcdefghij"):
        assert secret not in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "2.4.1", "transforms.daily_revenue:build", "9be2c0f1" * 8, "s3://finsight-raw/transactions/2026/01/*.parquet",
        "DailyRevenueByAccount_2024_Q1_v2_final", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dfile.encoding=UTF-8", "550e8400-e29b-41d4-a716-446655440000",
        "the quick brown fox jumps over the lazy dog", "EUR,USD,GBP,CHF,JPY,CNY,SEK,NOK,DKK,PLN", "Europe/Berlin",
        "postgresql+psycopg://errata@db.example.com:5432/errata?sslmode=require", "https://example.com/path?page=2",
        "arn:aws:iam::123456789012:role/errata-worker-EU-Central-1", "part-00000-of-00128.snappy.parquet",
    ],
)  # fmt: skip
def test_ordinary_configuration_is_no_secret(text: str):
    """A rule that cries wolf is switched off by its users."""
    assert classify_secret(text) is None


def test_a_reason_with_a_secret_in_it_is_refused():
    """It would stand in every record for ever."""
    from errata.text.escape import require_one_line

    with pytest.raises(ErrataError, match="looks like an AWS access key") as refused:
        require_one_line("--reason", "used AKIAIOSFODNN7EXAMPLE by mistake")
    assert "IOSFODNN7" not in refused.value.message


def test_a_value_in_the_wrong_place_is_not_repeated(tmp_path: Path):
    """A password that ended up in the wrong key, or in an address that is none, is not printed by the refusal."""
    for text in (
        ERRATA.replace("@", "test").replace("sqlite:///.errata/ledger.db", "mysql://u:hunter2@h/d"),
        ERRATA.replace("@", "test") + "storage: {s3: {secret_access_key: 12345678, access_key_id: x}}\n",
        ERRATA.replace("@", "test") + "storage: {s3: {secret_access_key: [hunter2], access_key_id: x}}\n",
    ):
        (tmp_path / "errata.yaml").write_text(text)
        with pytest.raises(ProjectFileError) as refused:
            load_project(tmp_path, environ={})
        assert "hunter2" not in refused.value.message
        assert "12345678" not in refused.value.message


def test_a_session_token_of_any_length_is_taken(planted: Planted):
    """Those of AWS are longer than a line of text."""
    project: Project = load_project(planted.root)
    assert project.s3 is not None
    assert project.s3.session_token == CANARIES["S3_SESSION"]


PLANTED = {
    "LAKE_PASSWORD": "c4nary-lake-pa55word",
    "S3_KEY_ID": "C4NARYKEYID000000001",
    "S3_SECRET": "c4naryS3/secret+key==",
    "SPARK_PLAIN": "c4nary-spark-plain",
    "ALARM_TOKEN": "c4nary-alarm-token",
    "TRANSFORM_TOKEN": "c4nary-transform-token",
}
GOVERNED = """
evidence: {key: "${SIGNING}", heads: .errata/heads, subject_key: "${SUBJECTS}"}
alarm: {command: [sh, -c, "exit 3", "${ALARM_TOKEN}"]}
health: [{name: queue, command: [sh, -c, "echo 0", "${TRANSFORM_TOKEN}"], pause_above: 1}]
logging: {file: .errata/errata.jsonl}
lineage: {file: .errata/lineage.jsonl, namespace: "${SPARK_PLAIN}"}
"""
QUOTING = """
import os


def build(ctx, raw):
    raise RuntimeError("no route to https://api/?key=" + os.environ["TRANSFORM_TOKEN"])
"""


@dataclass
class Lived:
    """A governed lake on PostgreSQL and the real command line on it; everything that was said, and the keys."""

    world: World
    keys: tuple[str, ...]
    said: list[str] = field(default_factory=list)

    def errata(self, *arguments: str, person: str = "ana", code: int = 0) -> str:
        out, err = io.StringIO(), io.StringIO()
        outside = Outside(
            open_project=lambda place, **named: package.open(str(place), spark=self.world.spark, **named),
            out=out, err=err, interactive=False, environ={"ERRATA_USER": person, "ERRATA_DEBUG": "1"}, width=100,
        )  # fmt: skip
        found = main(("-C", str(self.world.root), *arguments), outside)
        self.said += [out.getvalue(), err.getvalue()]
        assert found == code, (arguments, self.said[-2:])
        assert not self.leaks("".join(self.said[-2:])), arguments
        return out.getvalue()

    def leaks(self, text: str) -> list[str]:
        secrets = (*PLANTED.values(), *self.keys)
        return [spelt for secret in secrets for spelt in spellings(secret) if spelt in text]


@pytest.fixture
def lived(
    make_world: Callable[..., World], postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lived]:
    if reason := missing("postgres"):
        pytest.skip(reason)
    lines = []
    for name in ("SIGNING", "SUBJECTS"):
        generate_key_pair(tmp_path / name)
        pem = (tmp_path / name).read_text()
        # as a variable of a CI system holds it
        monkeypatch.setenv(name, pem.strip().replace("\n", "\\n"))
        lines.append(pem.splitlines()[1])
    for name, canary in PLANTED.items():
        monkeypatch.setenv(name, canary)
    url = postgres.create_database(f"secrets_{free_port()}").replace("errata@", "errata:PASSWORD@")
    place = tmp_path / "world0"
    lake = replace(
        postgres_lake(place, url.replace("PASSWORD", "${LAKE_PASSWORD}")),
        pyiceberg=postgres_lake(place, url.replace("PASSWORD", PLANTED["LAKE_PASSWORD"])).pyiceberg,
        storage='{s3: {access_key_id: "${S3_KEY_ID}", secret_access_key: "${S3_SECRET}"}}',
    )
    (place / ".errata/heads").mkdir(parents=True)
    world = make_world(lake=lake, days=2, project=GOVERNED)
    world.configure(
        'spark.sql.shuffle.partitions: "2"', 'spark.sql.shuffle.partitions: "2"\n    spark.x: "${SPARK_PLAIN}"'
    )
    world.configure("cy: {roles: [requester", "cy: {roles: [break_glass, requester")
    yield Lived(world, tuple(lines))
    logs.stop()


@pytest.mark.spark
def test_no_secret_is_told_or_kept_from_plan_to_evidence(lived: Lived):
    """Every step of a run on Spark and its failures: answers, errors, ledger, audit, report, bundle, logs, lineage."""
    run, (first, second) = lived.errata, lived.world.days
    plan = json.loads(run("plan", "fin.sales", "--partitions", first, "--reason", "doubled", "--json"))
    name, digest = plan["run_id"], plan["manifest_digest"]
    run("approve", name, "--digest", "0" * 64, person="bo", code=3)
    run("approve", name, "--digest", digest, "--note", "checked", person="bo")
    run("show", name, "--json")
    run("run", name, "--validate")
    run("diff", name, "--json")
    run("report", name, "-o", ".errata/report.html")
    run("release", name, person="bo", code=3)
    released = json.loads(run("status", name, "--json"))["release_digest"]
    run("release", name, "--digest", released, person="bo")
    run("publish", name, person="bo")
    run("why", TABLE, first, "--json")
    run("rollback", name, "--reason", "not yet", person="bo")
    (lived.world.root / "transforms/sales.py").write_text(QUOTING)
    failing = json.loads(run("plan", "fin.sales", "--partitions", second, "--reason", "again", "--json"))
    run(
        "approve", failing["run_id"], "--digest", failing["manifest_digest"], "--break-glass", "market opens",
        person="cy",
    )  # fmt: skip
    run("run", failing["run_id"], code=1)
    run("status", failing["run_id"], "--json")
    run("evidence", "export", name, "-o", ".errata/run.errata", person="bo")
    run("evidence", "verify", ".errata/run.errata", "--key", str(lived.world.root.parent / "SIGNING.pub"))
    run("audit", "head", "--json", person="bo")
    run("audit", "verify", "--json")
    told = run("audit", "log", "--json")
    run("doctor", "--json")
    run("metrics")
    assert "${TRANSFORM_TOKEN}" in told, "the failure quoted it, and the audit kept its name"
    assert "the alarm command" in run("outbox", "--all", "--json"), "why it failed, without the command"
    found = [path for path in lived.world.root.rglob("*") if path.is_file() and path.name != "errata.yaml"]
    assert {".html", ".errata", ".db", ".json", ".avro"} <= {path.suffix for path in found}
    assert {"errata.jsonl", "lineage.jsonl"} <= {path.name for path in found}
    for path in found:
        content = path.read_bytes()
        assert not lived.leaks(content.decode("latin-1") + content.decode("utf-8", "replace")), path
    assert lived.leaks(" ".join(f"{key}={value}" for key, value in os.environ.items())), "the search itself finds them"
