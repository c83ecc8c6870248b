"""The Client: the methods that plan, compute, look at, publish and roll back a correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from errata import views
from errata.client.campaigns import Campaigns
from errata.client.consumers import Consumers
from errata.client.late_data import LateData
from errata.client.metrics import Metrics
from errata.client.open_project import Partitions
from errata.client.recordings import Recordings
from errata.client.submissions import Submissions
from errata.commands import compute, look, plan, publish
from errata.delivery.lineage.after_work import sending_lineage
from errata.errors import ErrataError, UsageError
from errata.text.escape import require_one_line

if TYPE_CHECKING:
    from errata.views.diff import DiffView
    from errata.views.report import ReportView
    from errata.views.run import TryView


class Client(LateData, Consumers, Campaigns, Recordings, Metrics, Submissions):
    """One open project; close it, or use it as a context manager."""

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
        restore_from: str | None = None,
        expected_rows: str | None = None,
        copies: Sequence[str] | None = None,
        stale: bool = False,
        dry_run: bool = False,
        explain: bool = False,
        as_: str | None = None,
    ) -> views.PlanView:
        """Plan a correction and submit it for approval.

        ``stale`` plans the stale partitions, of the range or list or of all. ``restore`` is the snapshot, tag or time
        whose content is put back, ``restore_from`` the table, copy or source that has it if not the table itself.
        ``expected_rows`` is the number of rows that the run may write: ``5000``,
        ``1000..5000``, ``1000..`` or ``..5000``. ``copies`` repairs copies that differ from what is accepted, those of
        these names or all if empty; nothing is computed, and main is not changed. ``dry_run`` only shows the plan;
        ``explain`` adds the stages of the run.

        Example: run = client.plan("fin.daily_revenue", "2026-01-01", "2026-02-15", reason="FX bug FIN-231", as_="ana")
        """
        actor = self._actor(as_)
        request = self._build_request(
            actor, product, start, end, partitions, reason=reason, kind=kind, restore=restore, overrides=overrides,
            stale=stale, order=order, canary=canary, supersede=supersede, prove_determinism=prove_determinism,
            deadline=deadline, expected_rows=expected_rows, restore_from=restore_from,
            copies=None if copies is None else tuple(copies),
        )  # fmt: skip
        view = plan.plan.make_plan(self._workspace, actor, request, dry_run=dry_run)
        return plan.explain.add_stages(view) if explain else view

    def try_out(
        self, product: str, partitions: str | Sequence[str], *, sample: int = 10, as_: str | None = None
    ) -> TryView:
        """Compute partitions with the current code, judge them and compare them with main; nothing is written.

        Example: client.try_out("fin.daily_revenue", "2026-01-13")
        """
        return plan.try_.try_partitions(self._workspace, self._actor(as_), product, partitions, sample)

    def show(self, run_id: str) -> views.PlanView:
        """A plan as stored in the ledger.

        Example: client.show(run.id)
        """
        return plan.show.show_plan(self._workspace, self._actor(None), run_id)

    def manifest_bytes(self, run_id: str) -> bytes:
        """The exact bytes of the sealed manifest.

        Example: client.manifest_bytes(run.id)
        """
        runs = self._workspace.ledger.runs
        return runs.manifest_bytes(runs.get(run_id).run_id, self._actor(None))

    def approve(
        self, run_id: str, *, digest: str | None, note: str = "", break_glass: str | None = None, as_: str | None = None
    ) -> views.DecisionView:
        """Approve the plan with this digest; without one, refuse and show what would be signed.

        ``break_glass`` is the reason why one person decides alone, without a second person or the quorum.

        Example: client.approve(run.id, digest=run.digest, as_="bo")
        """
        alone, said = _require_line("--break-glass", break_glass), require_one_line("--note", note)
        return plan.approve.approve(self._workspace, self._actor(as_), run_id, digest, break_glass=alone, note=said)

    def decline(self, run_id: str, *, note: str, as_: str | None = None) -> views.DecisionView:
        """Decline the plan; this is final.

        Example: client.decline(run.id, note="wrong month", as_="bo")
        """
        return plan.approve.decline(self._workspace, self._actor(as_), run_id, require_one_line("--reason", note))

    def run(
        self,
        run_id: str,
        *,
        parallel: int = 2,
        max_chunks: int | None = None,
        publish: bool = False,
        as_: str | None = None,
    ) -> views.RunView:
        """Work on a run until nothing is left; ``publish`` judges and publishes each wave as soon as it may go.

        Example: client.run(run.id, as_="ana")
        """
        actor = self._actor(as_)
        with sending_lineage(self._workspace, actor, run_id):
            return compute.run.run_chunks(
                self._workspace, actor, run_id, parallel=parallel, max_chunks=max_chunks, publish=publish
            )

    def pause(self, run_id: str, *, as_: str | None = None) -> views.StateView:
        """Pause a run: workers claim no new chunk, and no further wave is published.

        Example: client.pause(run.id, as_="ana")
        """
        return compute.control.pause(self._workspace, self._actor(as_), run_id)

    def resume(self, run_id: str, *, as_: str | None = None) -> views.StateView:
        """Resume a paused run: chunks may be claimed and waves published again.

        Example: client.resume(run.id, as_="ana")
        """
        return compute.control.resume(self._workspace, self._actor(as_), run_id)

    def cancel(self, run_id: str, *, reason: str, now: bool = False, as_: str | None = None) -> views.StateView:
        """Cancel a run that is not published; ``now`` also stops running chunks.

        Example: client.cancel(run.id, reason="wrong month", as_="ana")
        """
        why = require_one_line("--reason", reason)
        return compute.control.cancel(self._workspace, self._actor(as_), run_id, why, now=now)

    def retry(self, run_id: str, *, chunk: str | None = None, as_: str | None = None) -> views.StateView:
        """Let failed chunks be claimed again (default: all of them).

        Example: client.retry(run.id, chunk="c0003", as_="ana")
        """
        return compute.control.retry(self._workspace, self._actor(as_), run_id, chunk)

    def validate(
        self,
        run_id: str,
        *,
        accept: Mapping[str, str] | None = None,
        thresholds: str | None = None,
        wave: int | None = None,
        as_: str | None = None,
    ) -> views.ValidateView:
        """Assemble, measure and judge the candidate; of a run with waves, of each that is computed, or of ``wave``.

        ``thresholds`` is the reason for using the thresholds currently in the product file instead of the sealed ones.

        Example: client.validate(run.id, accept={"sum(revenue_usd)": "the FX fix moves it"}, as_="bo")
        """
        accepted = {check: require_one_line(f"--accept {check}", why) for check, why in (accept or {}).items()}
        because = _require_line("--thresholds", thresholds)
        return publish.validate.validate_run(self._workspace, self._actor(as_), run_id, accepted, because, wave=wave)

    def diff(
        self, run_id: str, *, partitions: Partitions = None, sample: int = 10, wave: int | None = None
    ) -> DiffView:
        """Compare the candidate with the content that it replaces.

        Example: client.diff(run.id, partitions="2026-01-13..2026-01-15", sample=3)
        """
        return publish.diff.diff(self._workspace, self._actor(None), run_id, partitions, sample, wave)

    def report(
        self, run_id: str, *, partitions: Partitions = None, sample: int = 20, wave: int | None = None
    ) -> ReportView:
        """Everything a reviewer needs to decide; ``errata.report.page.render_page`` renders it as HTML.

        Example: client.report(run.id)
        """
        return publish.report.build_report(self._workspace, self._actor(None), run_id, partitions, sample, wave)

    def quarantine(self, run_id: str, *, sample: int = 3) -> views.QuarantineView:
        """Rows that a run set aside, by reason, with samples.

        Example: client.quarantine(run.id, sample=3)
        """
        return look.quarantine.read_quarantine(self._workspace, self._actor(None), run_id, sample)

    def release(
        self,
        run_id: str,
        *,
        digest: str | None = None,
        note: str = "",
        wave: int | None = None,
        as_: str | None = None,
    ) -> views.ReleaseView:
        """Release the candidate, its verdict and its accepted warnings; a service account may publish it afterwards.

        Example: client.release(run.id, digest=client.show(run.id).release_digest, as_="bo")
        """
        said = require_one_line("--note", note)
        return publish.release.release_run(self._workspace, self._actor(as_), run_id, digest, said, wave)

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
        """Publish the candidate in one commit, or its next wave where the product publishes in waves.

        ``digest`` is the release digest that the person reviewed; a candidate with another one is refused.
        ``break_glass`` is the reason for not waiting for a second person. With ``by_itself`` the call is not a decision
        of the acting person, so it needs a release, or a clean gate of a product that publishes without one. ``wait``
        continues until every wave is published; ``early`` is the reason for skipping the pause between two waves.

        Example: client.publish(run.id, as_="bo")
        """
        if wait and partitions is not None:
            raise UsageError("publish with partitions and wait was refused; expected one of them: waves come in turn")
        actor, alone = self._actor(as_), _require_line("--break-glass", break_glass)
        sooner = _require_line("--early", early)

        def once(looked_at: str | None) -> views.PublishView:
            return publish.publish.publish_run(
                self._workspace, actor, run_id, partitions,
                digest=looked_at, break_glass=alone, by_itself=by_itself, early=sooner,
            )  # fmt: skip

        with sending_lineage(self._workspace, actor, run_id):
            if not wait:
                return once(digest)
            return publish.publish_wait.publish_by_wave(
                self._workspace, actor, run_id, once, digest=digest, pauses=early is None
            )

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

        Example: client.dark(run.id, name="preview", as_="bo")
        """
        actor = self._actor(as_)
        return publish.preview.publish_preview(self._workspace, actor, run_id, name, compare=compare, rejected=rejected)

    def publishes_itself(self, run_id: str, *, as_: str | None = None) -> bool:
        """Whether a validated run may be published without a release, by the acting person.

        Example: client.publishes_itself(run.id, as_="airflow")
        """
        from errata.approval import authorization

        return authorization.can_publish_unattended(self._workspace, self._actor(as_), run_id)

    def require_unattended(self, run_id: str, *, as_: str | None = None) -> None:
        """Refuse a run that could not be published unattended at the end, before any work is done.

        Example: client.require_unattended(run.id, as_="airflow")
        """
        from errata.approval import authorization

        authorization.require_unattended(self._workspace, self._actor(as_), run_id)

    def rollback(
        self,
        run_id: str,
        *,
        partitions: Partitions = None,
        reason: str,
        wave: int | None = None,
        as_: str | None = None,
    ) -> views.RollbackView:
        """Restore the content that the partitions, or those of ``wave``, had before the run was published.

        Example: client.rollback(run.id, partitions="2026-01-13", reason="audit open (FIN-240)", as_="bo")
        """
        why, actor = require_one_line("--reason", reason), self._actor(as_)
        with sending_lineage(self._workspace, actor, run_id):
            return publish.rollback.roll_back_run(self._workspace, actor, run_id, partitions, why, wave)

    def status(self, run_id: str | None = None) -> views.StatusView:
        """Status of one run (default: all runs).

        Example: client.status(run.id).state
        """
        actor = self._actor(None)
        if self._workspace.ledger.guards.open_hazards():
            from errata.publishing.hazards import watch_guard

            watch_guard(self._workspace, actor)
        if run_id is None:
            return look.run_list.list_runs(self._workspace)
        from errata.publishing.live_writes import notice_live_writes

        context = self._workspace.open_run(run_id, actor)
        known = self._heads.get(context.run_id)
        self._heads[context.run_id] = notice_live_writes(context, "status", known_head=known)
        return look.status.build_status(self._workspace, actor, context.run_id)

    def next_steps(self, run_id: str, *, is_reviewed: bool = False, as_: str | None = None) -> tuple[str, ...]:
        """The command to type next for a run, as in its status; ``is_reviewed``: for someone who has seen the diff.

        Example: client.next_steps(run.id)
        """
        from errata.commands.situation import suggest_steps

        return suggest_steps(self._workspace, self._actor(as_), run_id, is_reviewed=is_reviewed)

    def log_about(self, run_id: str) -> None:
        """Give the log lines that follow the fields of this run; a run that is unknown changes nothing.

        Example: client.log_about("bf-20260214-daily-revenue-7f3a21c0")
        """
        with suppress(ErrataError):
            self._workspace.log_about(self._workspace.ledger.runs.get(run_id).run_id)

    def complete_commands(self, text: str, *, as_: str | None = None) -> str:
        """The text with its commands ready to paste: ``--as`` a person who may type them, and partitions.

        Example: print(client.complete_commands(error.hint))
        """
        from errata.approval.suggestion import complete_commands

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
        """Runs of a product or table (default: all); with ``accepted_at``, the runs that were current at that time.

        Example: client.runs("fin.daily_revenue", states=["published"])
        """
        from errata.model.duration import parse_instant

        if accepted_at is not None:
            if states or person or since:
                raise UsageError("--accepted-at with another filter was refused; expected a product or table at most")
            return look.history.find_current_runs(self._workspace, parse_instant(accepted_at), what)
        return look.history.list_runs(self._workspace, what, states, person, parse_instant(since) if since else None)

    def history(self, table: str, partition: str, *, most: int = 20) -> views.CommitsView:
        """Commits to a partition, newest first, each with the snapshot to restore in order to undo it.

        Example: client.history("lake.fin.daily_revenue", "2026-01-13")
        """
        return look.history.list_commits(self._workspace, table, partition, most)

    def impact(
        self, product: str, start: str | None = None, end: str | None = None, *, partitions: Partitions = None
    ) -> views.ImpactView:
        """What reads these partitions: products with their partitions, models of dbt, exposures and consumers.

        Example: client.impact("fin.daily_revenue", "2026-01-01", "2026-02-15").products
        """
        return look.impact.show_impact(self._workspace, product, start, end, partitions)

    def runbook(self, run_id: str) -> views.RunbookView:
        """The twenty steps of a correction, ticked from the record of the run.

        Example: [step.step for step in client.runbook(run.id).steps if step.state == "open"]
        """
        return look.runbook.build_runbook(self._workspace, self._actor(None), run_id)

    def why(self, table: str, partition: str, *, key: Mapping[str, str] | None = None) -> views.WhyView:
        """Who changed this number, when and why.

        Example: client.why("lake.fin.daily_revenue", "2026-01-13", key={"account_id": "A-10035"})
        """
        return look.why.explain_partition(self._workspace, self._actor(None), table, partition, key or {})


def _require_line(option: str, text: str | None) -> str | None:
    return None if text is None else require_one_line(option, text)
