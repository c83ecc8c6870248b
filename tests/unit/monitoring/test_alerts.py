"""Alerts and the dashboard: rules that Prometheus reads, on what ``errata metrics`` prints."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from ops import generate
from ops.alerts import ALERTS
from typer.main import get_command

import errata
from errata.cli.main import build_app
from errata.client import Client
from errata.ledger import Ledger
from errata.monitoring.metrics import METRICS, MetricType
from errata.project.starter import write_starter
from support.prometheus import RULES, check_alerts, need, serve_prometheus
from unit.ledger.shell import Shell
from unit.monitoring.ledgers import CASES, Fabricate, healthy

_NAME = re.compile(r"\berrata_[a-z_]+")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that exports heads, with an empty ledger."""
    root = tmp_path_factory.mktemp("project") / "shop"
    root.mkdir()
    write_starter(root)
    settings = root / "errata.yaml"
    settings.write_text(settings.read_text("utf-8") + "\nevidence: {key: key.pem, heads: heads}\n", "utf-8")
    (root / "heads").mkdir()
    with errata.open(root) as client:
        client.create_ledger()
    return root


def open_ledger(root: Path) -> str:
    return f"sqlite:///{root}/.errata/ledger.db"


def print_metrics(project: Path, place: Path, fabricate: Fabricate) -> str:
    """What the command prints when the ledger is so."""
    root = Path(shutil.copytree(project, place))
    shell = Shell(open_ledger(root))
    with Ledger.open(open_ledger(root)) as ledger:
        fabricate(ledger, shell)
    shell.close()
    with errata.open(root) as client:
        return client.metrics_text()


def test_each_alert_fires_when_it_should_and_none_on_a_healthy_ledger(project: Path, tmp_path: Path):
    """Every case of the list, and what no ledger can say: it cannot be read, and nobody serves metrics."""
    now = time.time()
    cases = {
        name: (print_metrics(project, tmp_path / f"case-{n}", fabricate), alerts)
        for n, (name, (fabricate, alerts)) in enumerate(CASES.items())
    }
    cases["nobody serves metrics"] = ("", ("ErrataMetricsAbsent",))
    cases["a ledger that is down"] = (_scrape_broken(project, tmp_path / "broken"), ("ErrataLedgerUnreadable",))
    assert {alert for _, alerts in cases.values() for alert in alerts} == {alert.name for alert in ALERTS}
    check_alerts(cases, now, tmp_path)


def _scrape_broken(project: Path, place: Path) -> str:
    root, told = Path(shutil.copytree(project, place)), []
    with errata.open(root) as client, client.serve_metrics("127.0.0.1:0", on_error=told.append) as at:
        (root / ".errata" / "ledger.db").write_bytes(b"this is no database" * 1000)
        text = _fetch(at)
    assert told
    return text


def _fetch(at: str) -> str:
    with urlopen(f"http://{at}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.fixture
def served(project: Path, tmp_path: Path) -> Iterator[tuple[Client, str]]:
    """A healthy project whose metrics are served."""
    root = Path(shutil.copytree(project, tmp_path / "served"))
    with Ledger.open(open_ledger(root)) as ledger:
        healthy(ledger, Shell(open_ledger(root)))
    with errata.open(root) as client, client.serve_metrics("127.0.0.1:0") as at:
        yield client, at


def test_prometheus_understands_every_query_of_the_dashboard_and_every_alert(
    served: tuple[Client, str], tmp_path: Path
):
    """A real server scrapes us, evaluates our rules and answers the queries of every panel."""
    _, at = served
    with serve_prometheus(at, tmp_path) as server:
        server.wait_for("backfill_output_records_total")
        for query in generate.list_queries():
            server.query(query.replace("$product", ".*").replace("$run", ".*"))
        for alert in ALERTS:
            server.query(alert.expr)
        assert server.query('errata_run_state{state="running",run="bf-0"}')[0]["value"][1] == "1"
        assert server.query('errata_waves{run="bf-0",state="waiting"}')


def test_the_rules_are_valid():
    """As promtool says."""
    done = subprocess.run([need("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_rules_dashboard_and_pages_are_those_of_the_lists():
    """``python -m ops.generate`` would change nothing."""
    for path, text in generate.build_files().items():
        assert path.read_text("utf-8") == text, f"{path.name} is out of date: python -m ops.generate"
    assert {path.stem for path in (generate.DOCS / "alerts").glob("Errata*.md")} == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("command", sorted({command for alert in ALERTS for command, _ in alert.steps}))
def test_what_a_page_says_to_type_is_a_command_with_all_that_it_needs(command: str):
    """With an id, a product or a number in place of the capital letters."""
    program, words = get_command(build_app()), shlex.split(command.replace("ITEM", "7"))
    while hasattr(program, "commands") and words[1:]:
        program, words = program.commands[words[1]], words[1:]
    program.make_context(command, words[1:])


def test_a_page_about_no_single_run_says_how_to_find_it():
    """The labels of the alert are all that its reader has."""
    for alert in ALERTS:
        names_run = "$labels.run" in alert.summary
        commands = [command for command, _ in alert.steps]
        assert names_run or not any("RUN" in one for one in commands) or commands[0] == "errata status", alert.name


def test_queries_name_metrics_that_exist_and_every_metric_is_looked_at():
    """A renamed metric would otherwise leave a panel empty for ever."""
    known: dict[str, str] = {}
    for metric in METRICS:
        is_duration = metric.type in (MetricType.HISTOGRAM, MetricType.SUMMARY)
        for ending in ("_sum", "_count", "_bucket") if is_duration else ("",):
            known[metric.full_name + ending] = metric.name
    board = json.loads((RULES.parent / "errata-dashboard.json").read_text("utf-8"))
    shown = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert shown == list(generate.list_queries())
    used = {name for text in (*shown, *(alert.expr for alert in ALERTS)) for name in _NAME.findall(text)}
    assert used <= known.keys()
    assert {known[name] for name in used} == {metric.name for metric in METRICS}
