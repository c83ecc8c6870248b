"""A project that an orchestrator corrects, in processes of its own, and the people who decide beside it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import errata
from errata.errors import NotFound

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".tools/orchestrators/bin/python"
_HERE = ROOT / "tests/orchestrators"


@dataclass(frozen=True)
class Orchestrated:
    """A starter project with the files of a guide."""

    name: str
    root: Path

    @classmethod
    def make(cls, name: str, root: Path) -> Orchestrated:
        """A starter project with its lake, the page's people and the page's Python file."""
        for words in (["-m", "errata", "init", str(root)], [str(root / "make_lake.py")]):
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
        page = (ROOT / f"docs/guides/{name}.md").read_text("utf-8")
        (people,) = re.findall(r"^```yaml\n(people:\n.*?)^```", page, re.MULTILINE | re.DOTALL)
        blocks = dict(re.findall(r"^```\w+\n# ([\w.]+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
        settings = root / "errata.yaml"
        settings.write_text(settings.read_text("utf-8").replace("people: single-user\n", people), "utf-8")
        for file, text in blocks.items():
            (root / file).write_text(text, "utf-8")
        return cls(name, root)

    def start(self, days: tuple[str, str], reason: str) -> subprocess.Popen[str]:
        """Start the job or flow for these days, the end excluded."""
        given = {
            "product": "shop.daily_sales", "start": days[0], "end": days[1], "reason": reason,
            "requested_by": "ana", "poll_seconds": 0.2, "wait_hours": 0.1,
        }  # fmt: skip
        config = {"resources": {"correction": {"config": given}}} if self.name == "dagster" else given
        return self.open([PYTHON, _HERE / f"start_{self.name}.py", json.dumps(config)])

    def open(self, command: list[Any]) -> subprocess.Popen[str]:
        """A process of the orchestrator, which may reach this machine only and reports nothing about its use."""
        quiet = {"DAGSTER_DISABLE_TELEMETRY": "yes", "DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        here = {"PYTHONPATH": f"{_HERE / 'guard'}{os.pathsep}{self.root}", "ERRATA_GUARD": str(self.guard)}
        home = {"PREFECT_HOME": str(self.root.parent / "prefect"), "HOME": str(self.root.parent)}
        slow = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120"}
        cache = {"ERRATA_CACHE": os.environ.get("ERRATA_CACHE") or str(Path.home() / ".cache/errata")}
        environment = os.environ | quiet | here | home | cache | slow
        with (self.root.parent / "errors.log").open("a") as log:
            return subprocess.Popen(
                [str(word) for word in command], cwd=self.root, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """What the orchestrator says about it at the end."""
        out, _ = process.communicate(timeout=240)
        assert process.returncode == 0, (out, (self.root.parent / "errors.log").read_text("utf-8")[-3000:])
        told: dict[str, Any] = json.loads(out.splitlines()[-1])
        return told

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill it with its children, as a machine that is switched off would."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)

    def wait_for(self, reason: str, *states: str) -> errata.views.RunLine:
        """The run with this reason as soon as it is in one of these states."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            for run in self.list_runs(reason):
                if run.state in states:
                    return run
            time.sleep(0.2)
        raise AssertionError(f"no run {reason} is {states}: {self.list_runs(reason)}")

    def list_runs(self, reason: str) -> list[errata.views.RunLine]:
        """Every run with this reason; none before the first plan has made the ledger."""
        with errata.open(str(self.root)) as client:
            try:
                return [run for run in client.runs().runs if run.reason == reason]
            except NotFound:
                return []

    def decide(self, run_id: str, decision: str) -> None:
        """A decision of bo: approve, decline or release."""
        with errata.open(str(self.root)) as client:
            plan = client.show(run_id)
            if decision == "approve":
                client.approve(run_id, digest=plan.manifest_digest, as_="bo")
            elif decision == "release":
                client.release(run_id, digest=plan.release_digest, as_="bo")
            else:
                client.decline(run_id, note="wrong days", as_="bo")

    def change_product(self, before: str, after: str) -> None:
        """Change the product file."""
        file = self.root / "products/daily_sales.yaml"
        text = file.read_text("utf-8")
        assert before in text
        file.write_text(text.replace(before, after), "utf-8")

    @property
    def guard(self) -> Path:
        """Where attempts to leave this machine are noted."""
        return self.root.parent / "guard.txt"
