"""The Client: every command as a method; it receives its ports and knows no adapter.

Each method resolves the acting person, runs the command from :mod:`errata.commands` and returns a frozen view with the
fields of ``--json``. ``as_`` is the person to act as.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from errata import views
from errata.approval import authorization
from errata.approval.suggestion import complete_commands
from errata.commands.compute import control, run
from errata.commands.look import history, quarantine, status, why
from errata.commands.plan import approve, plan
from errata.commands.plan.try_ import try_partitions
from errata.commands.publish import preview, publish, publish_wait, release, rollback, validate
from errata.commands.publish.diff import diff
from errata.commands.publish.report import build_report
from errata.commands.situation import suggest_steps
from errata.commands.upkeep import cleanup, erase, evidence
from errata.errors import UsageError
from errata.evidence import head_export
from errata.live_writers import lease
from errata.model.audit import Actor, AuditEntry
from errata.model.duration import parse_instant
from errata.model.manifest import Override
from errata.planning.request import Request
from errata.publishing.hazards import watch_guard
from errata.publishing.live_writes import notice_live_writes
from errata.text.escape import escape_text, require_one_line
from errata.views.checks import DoctorCheck
from errata.views.diff import DiffView
from errata.views.report import ReportView
from errata.views.run import TryView
from errata.workspace import Workspace

if TYPE_CHECKING:
    from errata.project import ProjectProblem

__all__ = ["Client", "DoctorCheck"]

Partitions = str | Sequence[str] | None
MAX_NAME_LENGTH = 100
"""Longest name of a person or a live job, in characters."""


class Client:
    """One open project; close it, or use it as a context manager."""

    def __init__(
        self,
        workspace: Workspace,
        doctor: Callable[[bool], tuple[DoctorCheck, ...]],
        check: Callable[[], tuple[ProjectProblem, ...]],
    ) -> None:
        self._workspace = workspace
        self._doctor = doctor
        self._check = check
        self._heads: dict[str, str | None] = {}  # by run id: head of main at the last check for live writes

    def redact(self, text: str) -> str:
        """Text for display, without the values that came from the environment."""
        return self._workspace.project.redact(text)

    @property
    def log(self) -> str:
        """Path of the log file of Java and Spark."""
        return str(self._workspace.engines.log)

    def plan(
        self,
        product: str,
        start: str | None = None,
        end: str | None = None,
        *,
        partitions: Partitions = None,
        reason: str,
        kind: str = "restate",
        order: str | None = None,
        canary: int | str = 0,
        prove_determinism: int = 0,
        deadline: str | None = None,
        supersede: str | None = None,
        overrides: Mapping[str, str] | None = None,
        restore: str | None = None,
        dry_run: bool = False,
        as_: str | None = None,
    ) -> views.PlanView:
        """Plan a correction and submit it for approval.

        ``restore`` is the snapshot, tag or time whose content is put back. ``dry_run`` only shows the plan.
        """
        actor = self._actor(as_)
        if restore is not None and kind == "restate":
            kind = "restore"
        request = Request(
            product, require_one_line("--reason", reason), actor.person, start, end, partitions, kind, order, canary,
            supersede,
            tuple(Override(rule, require_one_line(f"--override {rule}", why))
                  for rule, why in (overrides or {}).items()),
            prove_determinism, deadline, restore,
        )  # fmt: skip
        return plan.make_plan(self._workspace, actor, request, dry_run=dry_run)

    def try_out(
        self, product: str, partitions: str | Sequence[str], *, sample: int = 10, as_: str | None = None
    ) -> TryView:
        """Compute partitions with the current code, judge them and compare them with main; nothing is written."""
        return try_partitions(self._workspace, self._actor(as_), product, partitions, sample)

    def show(self, run_id: str) -> views.PlanView:
        """A plan as stored in the ledger."""
        return status.show_plan(self._workspace, self._actor(None), run_id)

    def manifest_bytes(self, run_id: str) -> bytes:
        """The exact bytes of the sealed manifest."""
        runs = self._workspace.ledger.runs
        return runs.manifest_bytes(runs.get(run_id).run_id, self._actor(None))

    def approve(
        self, run_id: str, *, digest: str | None, note: str = "", break_glass: str | None = None, as_: str | None = None
    ) -> views.DecisionView:
        """Approve the plan with this digest; without one, refuse and show what would be signed.

        ``break_glass`` is the reason why one person decides alone, without a second person or the quorum.
        """
        alone, said = _require_line("--break-glass", break_glass), require_one_line("--note", note)
        return approve.approve(self._workspace, self._actor(as_), run_id, digest, break_glass=alone, note=said)

    def decline(self, run_id: str, *, note: str, as_: str | None = None) -> views.DecisionView:
        """Decline the plan; this is final."""
        return approve.decline(self._workspace, self._actor(as_), run_id, require_one_line("--note", note))

    def run(
        self, run_id: str, *, parallel: int = 2, max_chunks: int | None = None, as_: str | None = None
    ) -> views.RunView:
        """Work on a run until nothing is left."""
        return run.run_chunks(self._workspace, self._actor(as_), run_id, parallel=parallel, max_chunks=max_chunks)

    def pause(self, run_id: str, *, as_: str | None = None) -> views.StateView:
        """Pause a run: workers claim no new chunk, and no further group is published."""
        return control.pause(self._workspace, self._actor(as_), run_id)

    def resume(self, run_id: str, *, as_: str | None = None) -> views.StateView:
        """Resume a paused run: chunks may be claimed and groups published again."""
        return control.resume(self._workspace, self._actor(as_), run_id)

    def cancel(self, run_id: str, *, reason: str = "", now: bool = False, as_: str | None = None) -> views.StateView:
        """Cancel a run that is not published; ``now`` also stops running chunks."""
        return control.cancel(self._workspace, self._actor(as_), run_id, require_one_line("--reason", reason), now=now)

    def retry(self, run_id: str, *, chunk: str | None = None, as_: str | None = None) -> views.StateView:
        """Let failed chunks be claimed again (default: all of them)."""
        return control.retry(self._workspace, self._actor(as_), run_id, chunk)

    def validate(
        self,
        run_id: str,
        *,
        accept: Mapping[str, str] | None = None,
        thresholds: str | None = None,
        as_: str | None = None,
    ) -> views.ValidateView:
        """Assemble, measure and judge the candidate.

        ``thresholds`` is the reason for using the thresholds currently in the product file instead of the sealed ones.
        """
        accepted = {check: require_one_line(f"--accept {check}", why) for check, why in (accept or {}).items()}
        because = _require_line("--thresholds", thresholds)
        return validate.validate_run(self._workspace, self._actor(as_), run_id, accepted, because)

    def diff(self, run_id: str, *, partitions: Partitions = None, sample: int = 10) -> DiffView:
        """Compare the candidate with the content that it replaces."""
        return diff(self._workspace, self._actor(None), run_id, partitions, sample)

    def report(self, run_id: str, *, partitions: Partitions = None, sample: int = 20) -> ReportView:
        """Everything a reviewer needs to decide; ``errata.report.page.render_page`` renders it as HTML."""
        return build_report(self._workspace, self._actor(None), run_id, partitions, sample)

    def quarantine(self, run_id: str, *, sample: int = 3) -> views.QuarantineView:
        """Rows that a run set aside, by reason, with samples."""
        return quarantine.read_quarantine(self._workspace, self._actor(None), run_id, sample)

    def release(
        self, run_id: str, *, digest: str | None = None, note: str = "", as_: str | None = None
    ) -> views.ReleaseView:
        """Release the candidate, its verdict and its accepted warnings; a service account may publish it afterwards."""
        return release.release_run(self._workspace, self._actor(as_), run_id, digest, require_one_line("--note", note))

    def publish(
        self,
        run_id: str,
        *,
        partitions: Partitions = None,
        digest: str | None = None,
        break_glass: str | None = None,
        by_itself: bool = False,
        wait: bool = False,
        early: str | None = None,
        as_: str | None = None,
    ) -> views.PublishView:
        """Publish the candidate in one commit, or its next group where the product publishes in groups.

        ``digest`` is the release digest that the person reviewed; a candidate with another one is refused.
        ``break_glass`` is the reason for not waiting for a second person. With ``by_itself`` the call is not a decision
        of the acting person, so it needs a release, or a clean gate of a product that publishes without one. ``wait``
        continues until every group is published; ``early`` is the reason for skipping the hold between two groups.
        """
        if wait and partitions is not None:
            raise UsageError("publish with partitions and wait was refused; expected one of them: groups come in turn")
        actor, alone = self._actor(as_), _require_line("--break-glass", break_glass)
        sooner = _require_line("--early", early)

        def once() -> views.PublishView:
            return publish.publish_run(
                self._workspace, actor, run_id, partitions,
                digest=digest, break_glass=alone, by_itself=by_itself, early=sooner,
            )  # fmt: skip

        if not wait:
            return once()
        return publish_wait.publish_by_group(self._workspace, actor, run_id, once, holds=early is None)

    def dark(
        self,
        run_id: str,
        *,
        name: str | None = None,
        compare: bool = False,
        rejected: bool = False,
        as_: str | None = None,
    ) -> views.DarkView:
        """Publish a preview: make the candidate readable under a name; main is not touched.

        ``compare`` adds a view that shows old and new values. ``rejected`` allows a candidate that did not pass its
        gate, under a name that says so.
        """
        actor = self._actor(as_)
        return preview.publish_preview(self._workspace, actor, run_id, name, compare=compare, rejected=rejected)

    def publishes_itself(self, run_id: str, *, as_: str | None = None) -> bool:
        """Whether a validated run may be published without a release, by the acting person."""
        return authorization.can_publish_unattended(self._workspace, self._actor(as_), run_id)

    def require_unattended(self, run_id: str, *, as_: str | None = None) -> None:
        """Refuse a run that could not be published unattended at the end, before any work is done."""
        authorization.require_unattended(self._workspace, self._actor(as_), run_id)

    def rollback(
        self, run_id: str, *, partitions: Partitions = None, reason: str, as_: str | None = None
    ) -> views.RollbackView:
        """Restore the content that the partitions had before the run was published."""
        why = require_one_line("--reason", reason)
        return rollback.roll_back_run(self._workspace, self._actor(as_), run_id, partitions, why)

    def status(self, run_id: str | None = None) -> views.StatusView:
        """Status of one run (default: all runs)."""
        actor = self._actor(None)
        watch_guard(self._workspace, actor)
        if run_id is not None:
            context = self._workspace.open_run(run_id, actor)
            known = self._heads.get(context.run_id)
            self._heads[context.run_id] = notice_live_writes(context, "status", known_head=known)
        return status.build_status(self._workspace, actor, run_id)

    def next_steps(self, run_id: str, *, is_reviewed: bool = False, as_: str | None = None) -> tuple[str, ...]:
        """The command to type next for a run, as in its status; ``is_reviewed``: for someone who has seen the diff."""
        return suggest_steps(self._workspace, self._actor(as_), run_id, is_reviewed=is_reviewed)

    def complete_commands(self, text: str, *, as_: str | None = None) -> str:
        """The text with its commands ready to paste: ``--as`` a person who may type them, and partitions."""
        return complete_commands(self._workspace, self._actor(as_), text)

    def runs(
        self,
        what: str | None = None,
        *,
        states: Sequence[str] = (),
        person: str | None = None,
        since: str | None = None,
        accepted_at: str | None = None,
    ) -> views.RunsView:
        """Runs of a product or table (default: all); with ``accepted_at``, the runs that were current at that time."""
        if accepted_at is not None:
            if states or person or since:
                raise UsageError("--accepted-at with another filter was refused; expected a product or table at most")
            return history.find_current_runs(self._workspace, parse_instant(accepted_at), what)
        return history.list_runs(self._workspace, what, states, person, parse_instant(since) if since else None)

    def history(self, table: str, partition: str, *, most: int = history.MAX_COMMITS) -> views.CommitsView:
        """Commits to a partition, newest first, each with the snapshot to restore in order to undo it."""
        return history.list_commits(self._workspace, table, partition, most)

    def why(self, table: str, partition: str, *, key: Mapping[str, str] | None = None) -> views.WhyView:
        """Who changed this number, when and why."""
        return why.explain_partition(self._workspace, self._actor(None), table, partition, key or {})

    def frozen(self, table: str, partitions: lease.Partitions = None, *, wait: str | None = None) -> views.FrozenView:
        """Freezes of these partitions; with ``wait``, wait for them to end and raise ``Frozen`` if they do not."""
        if wait is None:
            return lease.describe_freezes(self._workspace, table, partitions)
        return lease.wait_for_freezes(self._workspace, table, partitions, wait)

    def writing(
        self,
        table: str,
        partitions: lease.Partitions = None,
        *,
        wait: str = "0s",
        name: str | None = None,
        as_: str | None = None,
    ) -> AbstractContextManager[lease.Lease]:
        """Lease for a live job that writes these partitions: no run freezes them while it is held."""
        job = None if name is None else require_one_line("name", name, MAX_NAME_LENGTH)
        return lease.acquire_write_lease(self._workspace, self._actor(as_), table, partitions, wait=wait, name=job)

    def audit_verify(self, *, heads: Sequence[str | Path] = (), keys: Sequence[str | Path] = ()) -> views.AuditView:
        """Verify the audit chain against exported heads (default: those in ``evidence.heads``)."""
        return head_export.verify_against_heads(self._workspace, tuple(map(Path, heads)), tuple(map(Path, keys)))

    def audit_head(self, output: str | Path | None = None) -> views.HeadView:
        """Sign the head of the audit chain, and write it to ``evidence.heads`` and, if given, to a new file."""
        return head_export.export_head(self._workspace, None if output is None else Path(output))

    def erase_person(self, name: str, *, reason: str, as_: str | None = None) -> views.ErasedView:
        """Erase the name behind a pseudonym and the texts of that person; the audit chain stays valid."""
        name, why = require_one_line("NAME", name), require_one_line("--reason", reason)
        return erase.erase_person(self._workspace, self._actor(as_), name, why)

    def erase(self, subjects: Collection[str], *, reason: str, as_: str | None = None) -> views.ListedView:
        """Record data subjects as erased: their rows are neither published nor restored."""
        why = require_one_line("--reason", reason)
        return erase.add_erased_subjects(self._workspace, self._actor(as_), subjects, why)

    def audit_log(self, run_id: str | None = None, limit: int | None = None) -> tuple[AuditEntry, ...]:
        """Entries of the chain, oldest first."""
        full = self._workspace.ledger.runs.get(run_id).run_id if run_id else None
        return self._workspace.ledger.audit.readable_entries(full, limit)

    def evidence(
        self, run_id: str, *, with_diff: bool = True, as_: str | None = None
    ) -> tuple[evidence.EvidenceView, bytes]:
        """Export the evidence of a run as one signed file; ``errata evidence verify`` checks it."""
        return evidence.export_evidence(self._workspace, self._actor(as_), run_id, with_diff=with_diff)

    def cleanup(self, run_id: str | None = None, *, dry_run: bool = False, as_: str | None = None) -> views.CleanupView:
        """Remove branches and tags that nothing needs any more."""
        return cleanup.cleanup(self._workspace, self._actor(as_), run_id, dry_run=dry_run)

    def doctor(self, *, deep: bool = False) -> tuple[DoctorCheck, ...]:
        """Check Java, jars, catalogs, ledger and guards."""
        return self._doctor(deep)

    def check(self) -> tuple[ProjectProblem, ...]:
        """Check the project files against the transforms and the tables."""
        return self._check()

    def adopt(self, table: str) -> str:
        """Draft a product file from an existing table."""
        from errata.project.adopt import draft_product

        return draft_product(self._workspace.engines.tables.describe(table))

    def close(self) -> None:
        """Close the connections to catalogs and ledger."""
        self._workspace.engines.close()
        self._workspace.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _actor(self, person: str | None) -> Actor:
        user = _read_os_user()
        name = require_one_line("--as", person or os.environ.get("ERRATA_USER") or user, MAX_NAME_LENGTH)
        project = self._workspace.project
        return Actor(project.resolve_alias(name), user, escape_text(socket.gethostname()), project.single_user)


def _require_line(option: str, text: str | None) -> str | None:
    return None if text is None else require_one_line(option, text)


def _read_os_user() -> str:
    try:
        return escape_text(getpass.getuser())
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
