"""A client that answers with samples and remembers what it was asked, and a way to run commands with it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from errata.cli.app.session import CliEnvironment
from errata.cli.main import main
from errata.client import DoctorCheck
from errata.commands.next_step import RunSituation, next_steps
from errata.model.run import RunState
from errata.project import ProjectProblem
from errata.views import LedgerView
from errata.views.metrics import MetricsFileView
from unit.cli import samples


def _report() -> Any:
    from unit.report.reports import report  # is made of these samples

    return report()


ANSWERS: dict[str, Callable[[], Any]] = {
    "try_out": samples.trial,
    "plan": samples.plan,
    "show": samples.plan,
    "manifest_bytes": lambda: b'{"format":"errata.manifest/1"}',
    "approve": samples.decision,
    "decline": lambda: samples.decision("declined"),
    "run": samples.run_view,
    "pause": lambda: samples.state("paused"),
    "resume": lambda: samples.state("running"),
    "cancel": lambda: samples.state("cancelled"),
    "retry": lambda: samples.state("running"),
    "validate": samples.validation,
    "diff": samples.diff,
    "report": _report,
    "quarantine": samples.quarantined,
    "release": samples.released,
    "publishes_itself": lambda: False,
    "require_unattended": lambda: None,
    "publish": samples.publication,
    "dark": samples.dark,
    "rollback": samples.rollback,
    "writing": nullcontext,
    "status": samples.status,
    "why": samples.why,
    "runs": samples.accepted,
    "history": samples.commits,
    "impact": samples.impact,
    "metrics": samples.metrics,
    "metrics_text": lambda: "# TYPE errata_ledger_up gauge\nerrata_ledger_up 1.0\n",
    "write_metrics": lambda: MetricsFileView("/var/lib/node_exporter/errata.prom"),
    "stale": samples.stale,
    "check_consumers": samples.consumers,
    "confirm_consumer": samples.confirmed,
    "outbox": samples.outbox,
    "retry_outbox": lambda: samples.outbox_decision("retry"),
    "waive_outbox": lambda: samples.outbox_decision("waive"),
    "deliver": samples.delivery,
    "ready": samples.ready,
    "acknowledge": samples.acknowledged,
    "show_hold": samples.hold,
    "baseline": samples.baseline,
    "check_copies": samples.copies_check,
    "late": samples.late,
    "runbook": samples.runbook,
    "note": samples.note,
    "standing": samples.standings,
    "approve_standing": samples.standing,
    "revoke_standing": samples.standings,
    "audit_verify": samples.audit,
    "audit_gaps": samples.gaps,
    "audit_log": samples.log,
    "audit_head": samples.head,
    "create_ledger": lambda: LedgerView("0f1e2d3c4b5a6978", "/finsight/.errata/ledger.db", already=False),
    "erase": samples.listed,
    "erase_where": samples.erasure_places,
    "erase_prove": samples.erasure_proof,
    "erase_redact": samples.redaction,
    "erase_person": samples.erased,
    "evidence": lambda: (samples.evidence(), b"PK\x03\x04 bundle"),
    "cleanup": samples.cleanup,
    "check": lambda: (ProjectProblem("products/a.yaml", 7, 3, 'unknown key "ownr" (nearest: "owner")', "ownr"),),
    "doctor": lambda: (
        DoctorCheck("java", ok=True, found="Java 17"),
        DoctorCheck("jars", ok=False, found="none", hint="fetch"),
    ),
    "adopt": lambda: "product: fin.daily_revenue\n",
}


@dataclass
class FakeClient:
    """Answers with a sample, with what a test gives it, or by raising it."""

    given: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    closed: int = 0
    seen: list[Any] = field(default_factory=list)

    def open(self, directory: Any, **options: Any) -> FakeClient:
        self.opened.append({"directory": str(directory), **options})
        return self

    def close(self) -> None:
        self.closed += 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "next_steps" and name not in self.given:
            return self._next_steps
        if name == "complete_commands":
            return lambda text, **_: text
        if name not in ANSWERS and name not in self.given:
            raise AttributeError(name)

        def answer(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, arguments, named))
            found = self.given.get(name)
            if isinstance(found, BaseException):
                raise found
            if callable(found):
                return found(self, *arguments, **named)
            view = ANSWERS[name]() if found is None else found
            self.seen.append(view)
            return view

        return answer

    def _next_steps(self, _run: str, *, is_reviewed: bool = False, as_: str = "") -> tuple[str, ...]:
        """What a run in the state of the last view needs next."""
        views = (*reversed(self.seen), self.given.get("status"), samples.status())
        state = next(view.state for view in views if getattr(view, "state", None))
        return next_steps(RunSituation(samples.RUN, "fin.daily_revenue", RunState(state), is_reviewed=is_reviewed))

    def called(self, name: str) -> dict[str, Any]:
        """The named arguments of the only call of a method."""
        (found,) = (named for called, _, named in self.calls if called == name)
        return found


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def errata(
    *arguments: str, client: FakeClient | None = None, answer: str | None = None, environ: dict[str, str] | None = None
) -> Result:
    """Run one command, 80 columns wide; ``answer`` is what a person at a terminal types."""
    out, err = io.StringIO(), io.StringIO()
    world = CliEnvironment(
        open_project=(client or FakeClient()).open,
        out=out,
        err=err,
        ask=lambda _: answer or "",
        interactive=answer is not None,
        environ={"ERRATA_USER": "ana", **(environ or {})},
        width=80,
    )
    code = main(arguments, world)
    return Result(code, out.getvalue(), err.getvalue())
