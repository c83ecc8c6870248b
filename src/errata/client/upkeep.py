"""Methods of the Client beside a correction: set-up, live jobs, audit, evidence, erasure, clean-up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from errata import views
from errata.client.open_project import MAX_NAME_LENGTH, OpenProject
from errata.commands import upkeep
from errata.text.escape import require_one_line
from errata.views.checks import DoctorCheck

if TYPE_CHECKING:
    from errata.commands.upkeep.evidence import EvidenceView
    from errata.live_writers import lease
    from errata.model.audit import AuditEntry
    from errata.project import ProjectProblem
    from errata.views.audit import GapsView


class Upkeep(OpenProject):
    """Set a project up, keep live jobs out, and keep its records in order."""

    def doctor(self, *, deep: bool = False) -> tuple[DoctorCheck, ...]:
        """Check Java, jars, catalogs, ledger and guards.

        Example: client.doctor(deep=True)
        """
        return self._doctor(deep)

    def check(self) -> tuple[ProjectProblem, ...]:
        """Check the project files against the transforms and the tables.

        Example: client.check()
        """
        return self._check()

    def note(self, run_id: str, text: str, *, as_: str | None = None) -> views.NoteView:
        """Keep a note with a run, such as what was learnt from it.

        Example: client.note(run.id, "the rates of January came late; ask for them by the 5th", as_="ana")
        """
        return upkeep.note.add_note(self._workspace, self._actor(as_), run_id, text)

    def create_ledger(self) -> views.LedgerView:
        """Create the ledger that ``errata.yaml`` names; a plan does so as well.

        Example: client.create_ledger().place
        """
        ledger = self._workspace.ledger
        already = ledger.exists()
        ledger.create()
        return views.LedgerView(ledger.ledger_id, ledger.place, already)

    def adopt(self, table: str) -> str:
        """Draft a product file from an existing table.

        Example: print(client.adopt("lake.fin.daily_revenue"))
        """
        from errata.project.adopt import draft_product

        return draft_product(self._workspace.engines.tables.describe(table))

    def frozen(self, table: str, partitions: lease.Partitions = None, *, wait: str | None = None) -> views.FrozenView:
        """Freezes of these partitions; with ``wait``, wait for them to end and raise ``Frozen`` if they do not.

        Example: client.frozen("lake.fin.daily_revenue", ["2026-01-13"], wait="5min")
        """
        from errata.live_writers import lease

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
        report: bool = False,
        as_: str | None = None,
    ) -> AbstractContextManager[lease.Lease]:
        """Lease for a live job that writes these partitions: no run freezes them while it is held.

        With ``report``, what the job reads and writes is recorded for ``stale``.

        Example: with client.writing("lake.fin.daily_revenue", ["2026-01-13"], wait="5min"):
            write("2026-01-13")
        """
        from errata.live_writers import lease

        job = None if name is None else require_one_line("name", name, MAX_NAME_LENGTH)
        return lease.acquire_write_lease(
            self._workspace, self._actor(as_), table, partitions, wait=wait, name=job, report=report
        )

    def evidence(self, run_id: str, *, with_diff: bool = True, as_: str | None = None) -> tuple[EvidenceView, bytes]:
        """Export the evidence of a run as one signed file; ``errata evidence verify`` checks it.

        Example: view, bundle = client.evidence(run.id, as_="bo")
        """
        return upkeep.evidence.export_evidence(self._workspace, self._actor(as_), run_id, with_diff=with_diff)

    def audit_verify(self, *, heads: Sequence[str | Path] = (), keys: Sequence[str | Path] = ()) -> views.AuditView:
        """Verify the audit chain against exported heads (default: those in ``evidence.heads``).

        Example: client.audit_verify().ok
        """
        from errata.evidence import head_export

        return head_export.verify_against_heads(self._workspace, tuple(map(Path, heads)), tuple(map(Path, keys)))

    def audit_gaps(self, product: str | None = None) -> GapsView:
        """Commits on governed tables that no run and no registered live job made (default: of all products).

        Example: client.audit_gaps("fin.daily_revenue").ok
        """
        return upkeep.gaps.list_gaps(self._workspace, product)

    def audit_head(self, output: str | Path | None = None) -> views.HeadView:
        """Sign the head of the audit chain, and write it to ``evidence.heads`` and, if given, to a new file.

        Example: client.audit_head("head.json")
        """
        from errata.evidence import head_export

        return head_export.export_head(self._workspace, None if output is None else Path(output))

    def audit_log(self, run_id: str | None = None, limit: int | None = None) -> tuple[AuditEntry, ...]:
        """Entries of the chain, oldest first.

        Example: client.audit_log(run.id, limit=20)
        """
        full = self._workspace.ledger.runs.get(run_id).run_id if run_id else None
        return self._workspace.ledger.audit.readable_entries(full, limit)

    def erase(self, subjects: Collection[str], *, reason: str, as_: str | None = None) -> views.ListedView:
        """Record data subjects as erased: their rows are neither published nor restored.

        Example: client.erase(["A-10035"], reason="request 118", as_="bo")
        """
        return upkeep.erase.add_erased_subjects(
            self._workspace, self._actor(as_), subjects, require_one_line("--reason", reason)
        )

    def erase_where(self, subjects: Collection[str], *, as_: str | None = None) -> views.ErasureWhereView:
        """Every place that can still show these data subjects, with the day on which it ends.

        Example: client.erase_where(["A-10035"], as_="bo").places
        """
        return upkeep.erase_where.find_erased_subjects(self._workspace, self._actor(as_), subjects)

    def erase_prove(
        self, subjects: Collection[str], *, reason: str, leave: Mapping[str, str] | None = None, as_: str | None = None
    ) -> views.ErasureProofView:
        """Record that no place shows these data subjects any more; refused with the list of places that do.

        Example: client.erase_prove(["A-10035"], reason="request 118", as_="bo")
        """
        why = require_one_line("--reason", reason)
        return upkeep.erase_where.prove_erasure(self._workspace, self._actor(as_), subjects, why, leave or {})

    def erase_redact(self, *, reason: str, as_: str | None = None) -> views.RedactionView:
        """Take the rows of everyone on the list of erased subjects out of recordings.

        Example: client.erase_redact(reason="requests of March", as_="bo").files
        """
        return upkeep.erase_redact.redact_erased(
            self._workspace, self._actor(as_), require_one_line("--reason", reason)
        )

    def erase_person(self, name: str, *, reason: str, as_: str | None = None) -> views.ErasedView:
        """Erase the name behind a pseudonym and the texts of that person; the audit chain stays valid.

        Example: client.erase_person("ana", reason="left the company", as_="bo")
        """
        name, why = require_one_line("NAME", name), require_one_line("--reason", reason)
        return upkeep.erase.erase_person(self._workspace, self._actor(as_), name, why)

    def cleanup(self, run_id: str | None = None, *, dry_run: bool = False, as_: str | None = None) -> views.CleanupView:
        """Remove branches and tags that nothing needs any more.

        Example: client.cleanup(dry_run=True)
        """
        return upkeep.cleanup.cleanup(self._workspace, self._actor(as_), run_id, dry_run=dry_run)
