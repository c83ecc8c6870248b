"""Views as the client answers them, made by hand: a correction of 45 days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from errata.canonical import to_plain
from errata.commands.upkeep.evidence import EvidenceView
from errata.gate.diff.movements import build_movement, find_extremes
from errata.gate.verdict.findings import CandidateSummary
from errata.gate.verdict.judge import judge_candidate
from errata.model.audit import GENESIS, Actor, AuditEntry
from errata.model.diff import (
    ChangePattern,
    ColumnChange,
    Diff,
    MetricMoves,
    OutsideScope,
    PartitionDiff,
    SampleRow,
    SchemaDiff,
)
from errata.model.partition import Grain, expand_range, list_comparable
from errata.model.product import Control, GroupKey, Reconciliation
from errata.model.product.erasure_place import Place
from errata.ports.measure import Measurement
from errata.project import ProjectProblem
from errata.publishing.sql.comparison import build_read_statements
from errata.report.runbook import StepAction, list_steps
from errata.views import (
    AcceptedSpan,
    ApprovalView,
    AuditView,
    BreakGlassView,
    ChunkView,
    CleanupView,
    CommitsView,
    CommitView,
    CostView,
    DarkView,
    DbtModelView,
    DeadlineView,
    DecisionView,
    ErasedView,
    EstimateView,
    ExposureView,
    HazardView,
    HeadsView,
    HeadView,
    HistoryView,
    ImpactView,
    InputView,
    ListedView,
    PartitionView,
    PlanView,
    PublishView,
    QuarantineReason,
    QuarantineView,
    QuorumView,
    ReadingView,
    ReleasedView,
    ReleaseView,
    RollbackView,
    RowHistoryView,
    RuleChangeView,
    RunCounts,
    RunLine,
    RunsView,
    RunView,
    SetAsideRow,
    SetBackView,
    StateView,
    StatusView,
    TouchedView,
    ValidateView,
    VerdictView,
    WaveTurnView,
    WaveView,
    WhyView,
)
from errata.views.audit import (
    ErasureProofView,
    ErasureWhereView,
    ForeignCommitView,
    GapsView,
    GapView,
    ProductGapsView,
    RedactedFileView,
    RedactionView,
)
from errata.views.checks import CheckResult
from errata.views.consumers import ConfirmView, ConsumerEffectView, ConsumersView
from errata.views.copies import (
    BaselineCopy,
    BaselinePartition,
    BaselineView,
    CheckedCopy,
    CopiesCheckView,
    CopyLine,
    DifferingPartition,
)
from errata.views.diff import DiffView
from errata.views.late import (
    LateProductView,
    LateView,
    StandingDecisionView,
    StandingsView,
    StandingUseView,
    StandingView,
)
from errata.views.metrics import MetricsView, MetricValue, MetricView
from errata.views.outbox import DeliverView, OutboxDecisionView, OutboxItemView, OutboxView
from errata.views.readiness import HoldView, PartitionReadyView, ReadyView
from errata.views.recovery_line import RecoveryLine
from errata.views.run import TryView
from errata.views.runbook import NoteView, RunbookView
from errata.views.stale import StalePartitionView, StaleProductView, StaleReasonView, StaleView
from unit.gate.manifests import manifest

RUN = "bf-20260214-daily-revenue-7f3a21c0"
DIGEST = "9be2c0f1" + "0123456789abcdef" * 3 + "cafe0071"
CODE = "41f0" + "ab" * 30
REASON = "FX rates applied inverted since release 2.3.9 (FIN-231)"
HEAD = "c0ffee00" * 8


def days(first: str, number: int) -> tuple[str, ...]:
    start = date.fromisoformat(first)
    return tuple((start + timedelta(days=n)).isoformat() for n in range(number))


SCOPE = days("2026-01-01", 45)
CHUNKS = tuple(ChunkView(f"c000{n + 1}", SCOPE[30 - 15 * n : 45 - 15 * n], 640_000_000, 3_000_000) for n in range(3))
INPUTS = (
    InputView(
        "transactions",
        None,
        "s3://finsight-raw/transactions/business_date={business_date}/*.parquet",
        None,
        180,
        9_000_000,
        1_900_000_000,
        SCOPE,
    ),
    InputView(
        "fx_rates", "lake.ref.fx_rates", None, "1203944182745550012", 1, 120, 4_200, (), "corrected_truth", version="v3"
    ),
)
VERDICTS = (
    VerdictView("range", "ok", "45 ≤ 180 partitions"),
    VerdictView("source-missing", "ok", "45 of 45 days present"),
    VerdictView("recent", "warn", "2026-02-14 closes today; protect.recent is 1d", "books closed early"),
    VerdictView("overlap", "ok", "no other active run on these partitions"),
)
APPROVAL = ApprovalView("bo", "approved", DIGEST, "2026-02-14T09:12:33.120000+00:00", "checked against the bank file")


def plan(**changes: object) -> PlanView:
    fields: dict[str, object] = {
        "run_id": RUN,
        "manifest_digest": DIGEST,
        "state": "planned",
        "already": False,
        "product": "fin.daily_revenue",
        "table": "lake.fin.daily_revenue",
        "kind": "restate",
        "reason": REASON,
        "requested_by": "ana",
        "order": "newest",
        "grain": "day",
        "partitions": SCOPE,
        "chunks": CHUNKS,
        "inputs": INPUTS,
        "verdicts": VERDICTS,
        "estimate": EstimateView(9_000_000, 1_900_000_000, 130, "0.0042", 110, 150, "run bf-20260101-x-5e1"),
        "refs": (f"errata_{RUN}_base", "errata_guard", f"errata_{RUN}", f"errata_{RUN}_c1_…"),
        "code": {
            "call": "transforms.daily_revenue:build",
            "version": "2.4.1",
            "digest": CODE,
            "git_commit": "8d91ab7c55d0aa11",
            "git_dirty": False,
        },
        "gate": {"checks": 6, "reconciliations": 2, "comparisons": 1},
        "consumers": ("exec-dashboard",),
        "untouched_partitions": 15,
        "new_partitions": (),
        "overrides": {"recent": "books closed early"},
        "supersedes": None,
        "single_user": False,
        "approvers": ("bo",),
        "planned_at": "2026-02-14T08:55:10+00:00",
    }
    return PlanView(**{**fields, **changes})  # type: ignore[arg-type]


EARLIER = "bf-20260213-daily-revenue-0c11aa20"
LOOSENED = plan(
    supersedes=EARLIER,
    rules_changed=(
        RuleChangeView("check one row per account", "metric duplicateValues, threshold mustBe 0", None, EARLIER),
        RuleChangeView("compare sum(net)", "block 60%", "block 95%", EARLIER),
    ),
)


def deadline(**changes: object) -> DeadlineView:
    fields: dict[str, object] = {
        "by": "2026-11-17T06:00Z",
        "available_seconds": 28_800,
        "cores_configured": 8,
        "cores_needed": 5,
        "seconds_configured": 17_000,
        "seconds": 17_000,
        "core_hours": "37.78",
        "usd": "2.8600",
        "meets": True,
        "measured": True,
        "basis": "run bf-20260101-daily-revenue-1a2b3c4d: 9.4 MiB or 256,000 rows per core-second",
    }
    missed = {
        "cores_needed": 12,
        "seconds_configured": 41_000,
        "seconds": 27_600,
        "core_hours": "92.00",
        "usd": "6.9600",
    }
    late = missed if changes.get("meets") is False else {}
    guess = {} if changes.get("measured", True) else {"basis": "no measured run yet: 8 MiB per core-second assumed"}
    return DeadlineView(**{**fields, **late, **guess, **changes})  # type: ignore[arg-type]


def long_plan(**changes: object) -> PlanView:
    """Five years by day: a canary, chunks of all sizes, every limit, and the question whether there is time."""
    names = days("2021-01-01", 1825)
    edges = [0, 1, 3, *(53 + 50 * n + n % 7 for n in range(35)), 1824, 1825]
    fat = {1824: 9_000_000_000}
    chunks = tuple(
        ChunkView(f"c{n:03d}", names[a:b], fat.get(a, 40_000_000 * (b - a)), 0, 0 if n <= 2 else 1)
        for n, (a, b) in enumerate(pairwise(edges), 1)
    )
    fields: dict[str, object] = {
        "partitions": names,
        "chunks": chunks,
        "order": "oldest",
        "prove_determinism": 3,
        "throttle": {
            "chunks": 2,
            "cores": 8,
            "rows_per_minute": 2_000_000,
            "bytes_per_minute": 2**30,
            "commits_per_hour": 60,
            "burst": 10,
            "pause_seconds": 300,
            "hours": ["22:00-06:00"],
            "zone": "Europe/Berlin",
        },
        "deadline": deadline(),
    }
    return plan(**{**fields, **changes})


def refused_plan() -> PlanView:
    refusals = (
        VerdictView("range", "ok", "45 ≤ 180 partitions"),
        VerdictView("source-missing", "refuse", "2026-01-07, 2026-01-19 … 2026-01-20 have no source files"),
        VerdictView("overlap", "refuse", f"{RUN} is running on 2026-02-01 … 2026-02-14"),
    )
    return plan(
        run_id="", manifest_digest="", state="refused", verdicts=refusals, refs=(), code={}, gate={}, inputs=(),
        overrides={},
    )  # fmt: skip


def decision(state: str = "approved") -> DecisionView:
    return DecisionView(RUN, state, already=False, manifest_digest=DIGEST, approvals=(APPROVAL,))


KEY_WARNING = ProjectProblem(
    "products/a.yaml", 6, 8, "target.key: no check says that the key is unique", "target.key", "warning"
)
R = "5c1e0b77" + "fedcba9876543210" * 3 + "0071cafe"
BROKEN = BreakGlassView("dana", "market opens in 10 minutes", "2026-02-14T09:12:33+00:00", "approve", "rung")
HALF = QuorumView(2, 1, met=False, people=("bo",), told="1 of 2 approvals, one of finance-data is missing",
                  lacks_owner="finance-data", may=("dana",))  # fmt: skip
OLD = QuorumView(1, 0, met=False, people=(), told="0 of 1 approval", may=("bo", "cy"),
                 void={"bo": "is of 2026-01-02 and counts for 30d"})  # fmt: skip
RELEASED = ReleasedView(R, "bo", "2026-02-15T09:30:00+00:00", "release", "checked with treasury", valid=True)
VOID = replace(RELEASED, digest="0" * 64, valid=False, void="there is a new candidate")


def released(*, release: ReleasedView | None = RELEASED, **changes: object) -> ReleaseView:
    fields: dict[str, object] = {
        "run_id": RUN,
        "state": "validated",
        "already": False,
        "release_digest": R,
        "manifest_digest": DIGEST,
        "candidate": f"errata_{RUN}_c1_5d41402a",
        "candidate_digest": "77" * 32,
        "snapshot_id": "5528119922337744001",
        "partitions": SCOPE,
        "checks": {"ok": 267, "warn": 3},
        "accepted": ({"check": "sum(revenue_usd)", "why": "the FX bug itself, FIN-231", "person": "bo"},),
        "release": release,
        "product": "fin.daily_revenue",
        "requested_by": "ana",
    }
    return ReleaseView(**{**fields, **changes})  # type: ignore[arg-type]


def alone() -> DecisionView:
    """Decided behind broken glass."""
    approval = replace(APPROVAL, person="dana", note="", break_glass=BROKEN.why)
    quorum = QuorumView(2, 0, met=True, people=(), told="break-glass approval by dana")
    return replace(decision(), approvals=(approval,), quorum=quorum, break_glass=BROKEN)


def state(word: str, *, already: bool = False) -> StateView:
    return StateView(RUN, word, already)


def run_view(**changes: object) -> RunView:
    fields: dict[str, object] = {
        "run_id": RUN,
        "state": "staged",
        "already": False,
        "chunks": RunCounts(3, 3, 0, 0, 0, 0),
        "recomputed": 1,
        "rows": 2_204_113,
        "seconds": 110.3,
        "log": ".errata/logs/spark-20260214.log",
    }
    return RunView(**{**fields, **changes})  # type: ignore[arg-type]


def failed_run() -> RunView:
    failure = {
        "chunk_id": "c0003",
        "partitions": list(reversed(SCOPE[:15])),  # a run begins with the newest
        "code": "source-changed",
        "error": "s3://finsight-raw/transactions/business_date=2026-01-03/part-0.parquet: expected 10421 bytes of "
        "mtime:1767400000, found 10455 bytes",
    }
    return run_view(
        state="failed", chunks=RunCounts(3, 2, 0, 1, 0, 0), recomputed=0, rows=1_400_000, failures=(failure,)
    )


def checks(*, warn: int = 0, block: int = 0) -> tuple[dict[str, object], ...]:
    found: list[dict[str, object]] = [
        {"name": "schema", "partition": None, "value": None, "level": "ok", "message": "9 columns as planned",
         "accepted_by": None},
    ]  # fmt: skip
    for n, name in enumerate(SCOPE):
        found.append(
            {"name": "rowCount", "partition": name, "value": "48980", "level": "ok",
             "message": "rowCount is 48980 rows; expected > 0", "accepted_by": None}
        )  # fmt: skip
        level = "block" if n < block else "warn" if n < block + warn else "ok"
        found.append(
            {"name": "sum(revenue_usd)", "partition": name, "value": f"-{9 + n % 5}.80%", "level": level,
             "message": f"sum(revenue_usd) was 915555.55, is 8{n:02d}000.10 (-{9 + n % 5}.80 %); warns above 5%, "
             "blocks above 60%", "accepted_by": None}
        )  # fmt: skip
    return tuple(found)


def validation(*, warn: int = 0, block: int = 0) -> ValidateView:
    passed = not (warn or block)
    return ValidateView(
        RUN, "validated" if passed else "rejected", already=False, passed=passed, snapshot_id="5528119922337744001",
        candidate=f"errata_{RUN}_c1_5d41402a", checks=checks(warn=warn, block=block), measured=405,
    )  # fmt: skip


def grouped_validation() -> ValidateView:
    """Six days, 300 currencies each, judged by the real rules: three groups of every other day are off."""
    scope = SCOPE[28:34]
    rule = Reconciliation("gross by currency", "raw", "sum(amount)", "sum(gross)", by=(GroupKey("ccy", "ccy", "ccy"),))
    control = Control("usual gross", "sum(gross)")
    controls = {day: list_comparable(Grain.DAY, day, 4) for day in scope}
    run = manifest(partitions=scope, reconcile=(rule,), control=(control,), control_partitions=controls)
    found: list[Measurement] = []
    for n, day in enumerate(scope):
        found += [
            Measurement("candidate", day, "rowCount", "300"),
            Measurement("candidate", day, "groups." + rule.name, "299"),
        ]
        found += [Measurement("input:raw", day, "groups." + rule.name, "300")]
        for m in range(300):
            name, off = f'reconcile.{rule.name} ["C{m:03d}"]', "0.01" if n % 2 and m < 2 else "0.00"
            found.append(Measurement("input:raw", day, name, f"{1000 + m}.00"))
            found += [Measurement("candidate", day, name, f"{1000 + m}{off[1:]}")] if m < 299 else []
        found.append(Measurement("candidate", day, "control.usual gross", "344850.02" if n % 2 else "302850.00"))
    for other in {other for names in controls.values() for other in names}:
        found.append(Measurement("control", other, "rowCount", "300"))
        found.append(Measurement("control", other, "control.usual gross", f"30{int(other[-2:]) % 7}850.00"))
    verdict = judge_candidate(run, found, CandidateSummary(dict.fromkeys(scope, 300), run.target.columns))
    return replace(validation(block=1), checks=tuple(to_plain(check) for check in verdict.checks), measured=len(found))


def rethresholded() -> ValidateView:
    """Validated after an approver changed two thresholds."""
    changes = (
        {"name": "gross", "before": {"tolerance": "0"}, "after": {"tolerance": "0.01%"}},
        {
            "name": "rowCount",
            "before": {"threshold": {"operator": "mustBeGreaterThan", "operand": "0", "upper": None}},
            "after": {"threshold": {"operator": "mustBeBetween", "operand": "1", "upper": "60000"}},
        },
    )
    change = {"person": "bo", "why": "rounding of the source, FIN-240", "changes": changes}
    return replace(validation(), thresholds=(change,))


def trial() -> TryView:
    """One day, tried."""
    whole = diff()
    one = replace(whole.diff, partitions=whole.diff.partitions[:1])
    found = tuple(CheckResult(**check) for check in checks(warn=1, block=0) if check["partition"] in (None, SCOPE[0]))
    return TryView(
        "fin.daily_revenue", "transforms.daily_revenue:build 2.4.1", (SCOPE[0],), 48_980, 4.2,
        passed=False, checks=found,
        diff=replace(whole, run_id="trial", snapshot_id="trial", diff=one),
    )  # fmt: skip


def diff() -> DiffView:
    change = {"revenue_usd": ColumnChange(32_578, "915555.55", "863777.10"), "fx_rate": ColumnChange(32_578)}
    parts = tuple(
        PartitionDiff(name, 48_980, 48_980, 0, 0, 32_578 - n, 16_402 + n, "key", change) for n, name in enumerate(SCOPE)
    )
    columns = {
        "revenue_usd": ColumnChange(1_465_020, "41200000.00", "38870000.00", median_percent="-11.21"),
        "fx_rate": ColumnChange(1_465_020, "49.10", "41.67", within=211),
        "event_count": ColumnChange(0, "9000000", "9000000"),
    }
    key = {"business_date": date(2026, 1, 17), "account_id": "•••", "currency": "EUR"}
    sample = (
        SampleRow(
            "2026-01-17", "changed", key, {"revenue_usd": Decimal("1204.11"), "fx_rate": Decimal("1.0913")},
            {"revenue_usd": Decimal("1021.76"), "fx_rate": Decimal("0.9260")},
        ),
        SampleRow("2026-01-18", "added", {**key, "business_date": date(2026, 1, 18)}, {},
                  {"revenue_usd": Decimal(7), "fx_rate": None}),
    )  # fmt: skip
    together = (ChangePattern(("revenue_usd", "fx_rate"), 1_465_000), ChangePattern(("revenue_usd",), 20))
    found = Diff(SchemaDiff(), parts, columns, sample, ("lineage columns are left out",), together,
                 masked=("account_id",), tolerance={"fx_rate": "0.000001"})  # fmt: skip
    moves = tuple(
        build_movement(name, "915555.55", f"{825_000 - 977 * (n * 7 % 45)}.10") for n, name in enumerate(SCOPE)
    )
    largest, smallest = find_extremes(moves)
    metric = MetricMoves("sum(revenue_usd)", "compare", partitions=moves, largest=largest, smallest=smallest)
    return DiffView(
        RUN, "fin.daily_revenue", "5528119922337744001", "5528119922337744000", "day", 15,
        ("business_date", "account_id", "currency"), found, (metric,), OutsideScope(15),
    )  # fmt: skip


def publication(**changes: object) -> PublishView:
    fields: dict[str, object] = {
        "run_id": RUN,
        "state": "published",
        "already": False,
        "publication_id": f"{RUN}-p1-3fa9c2",
        "snapshot_id": "7719003344556677889",
        "partitions": SCOPE,
        "data_files_written": 0,
        "removed_files": 180,
        "added_files": 45,
        "compacted": ("2026-01-03",),
        "live_commits": 7,
        "seconds": 0.4,
        "undo_until": "2026-03-16T09:41:07+00:00",
        "warnings": ("lake.ref.fx_rates has moved on since planning",),
    }
    return PublishView(**{**fields, **changes})  # type: ignore[arg-type]


def waves(done: int = 1) -> tuple[WaveView, ...]:
    """45 days, 14 at a time, newest first; so many are out, the others are judged."""
    cuts = [SCOPE[max(0, end - 14) : end] for end in range(len(SCOPE), 0, -14)]
    return tuple(_wave(n, cut, is_out=n <= done) for n, cut in enumerate(cuts, 1))


def _wave(n: int, partitions: tuple[str, ...], *, is_out: bool) -> WaveView:
    computed, judged = (f"2026-02-15T{9 + n:02d}:{minute}:07+00:00" for minute in (39, 40))
    if not is_out:
        return WaveView(n, partitions, "validated", judged, computed_at=computed)
    visible = f"2026-02-15T{9 + n:02d}:41:07+00:00"
    return WaveView(n, partitions, "published", judged, visible, (f"{RUN}-p{n}",), computed)


def turn(done: int = 1, **changes: object) -> WaveTurnView:
    """Whose turn it is among the waves above."""
    of = len(waves())
    fields: dict[str, object] = {
        "of": of, "size": "14", "pause": "1h", "order": "newest", "release": "each",
        "next": done + 1 if done < of else None,
    }  # fmt: skip
    if done < of:
        fields |= {"not_before": "2026-02-15T11:41:07+00:00", "seconds_left": 725}
    return WaveTurnView(**{**fields, **changes})  # type: ignore[arg-type]


def planned_waves(**changes: object) -> dict[str, object]:
    found = [list(wave.partitions) for wave in waves()]
    said: dict[str, object] = {
        "size": "14", "pause": "1h", "order": "newest", "release": "each", "within": {}, "waves": found,
        "with_last": [], "new_columns": [],
    }  # fmt: skip
    return {**said, **changes}


def first_wave() -> PublishView:
    return publication(
        state="part_published", partitions=SCOPE[31:], removed_files=56, added_files=14, compacted=(), warnings=(),
        waves=waves(), turn=turn(),
    )  # fmt: skip


def waved_status(**changes: object) -> StatusView:
    """The newest wave is out."""
    words = ["staged"] * 31 + ["published"] * 14
    fields: dict[str, object] = {
        "state": "part_published", "chunks": RunCounts(3, 3, 0, 0, 0, 0), "recomputed": 0, "attempts": (),
        "failures": (), "held": "", "next": f"errata publish {RUN}", "waves": waves(), "turn": turn(),
        "partitions": tuple(PartitionView(day, word) for day, word in zip(SCOPE, words, strict=True)),
        "publications": ({**PUBLICATION, "partitions": list(SCOPE[31:])},),
    }  # fmt: skip
    return status(**{**fields, **changes})


def dark(**changes: object) -> DarkView:
    name = f"errata_{RUN}_dark"
    fields: dict[str, object] = {
        "run_id": RUN,
        "state": "validated",
        "already": False,
        "table": "lake.fin.daily_revenue",
        "name": name,
        "snapshot_id": "5528119922337744001",
        "keep_until": "2026-03-17",
        "rejected": False,
        "reads": build_read_statements("lake.fin.daily_revenue", name, "5528119922337744001"),
        "comparison": "SELECT `business_date`, … FROM (…)",
        "view": None,
        "before": f"{name}_before",
    }
    return DarkView(**{**fields, **changes})  # type: ignore[arg-type]


def named() -> dict[str, object]:
    return {"name": f"errata_{RUN}_dark", "table": "lake.fin.daily_revenue", "snapshot_id": "5528119922337744001",
            "view": "lake.fin.errata_compare_x", "rejected": False, "at": "2026-02-15T09:41:07+00:00",
            "person": "bo"}  # fmt: skip


def rollback() -> RollbackView:
    return RollbackView(
        RUN, "published", already=False, publication_id=f"{RUN}-r2-81d0e4", snapshot_id="7720003344556677889",
        partitions=("2026-01-03", "2026-01-10", "2026-01-11"), data_files_written=0, seconds=0.31,
        product="fin.daily_revenue",
    )  # fmt: skip


HAZARD = HazardView(
    f"{RUN}-r2", "lake.fin.daily_revenue", ("2026-01-03",), "2026-02-15T09:41:07+00:00",
    "CALL lake.system.rewrite_data_files(table => 'fin.daily_revenue', where => \"business_date >= date'2026-01-03' "
    "AND business_date < date'2026-01-04'\", options => map('rewrite-all', 'true'))",
)  # fmt: skip


PUBLICATION = {
    "publication_id": f"{RUN}-p1-3fa9c2",
    "kind": "publish",
    "state": "committed",
    "partitions": list(SCOPE),
    "snapshot_id": "7719003344556677889",
    "person": "bo",
    "reason": REASON,
    "at": "2026-02-15T09:41:07+00:00",
    "data_files_written": 0,
}


def status(**changes: object) -> StatusView:
    words = ["waiting"] * 9 + ["failed"] * 6 + ["running"] * 15 + ["staged"] * 15
    fields: dict[str, object] = {
        "run_id": RUN,
        "product": "fin.daily_revenue",
        "state": "running",
        "chunks": RunCounts(4, 1, 1, 1, 0, 1),
        "recomputed": 1,
        "rows": 734_700,
        "partitions": tuple(PartitionView(day, word) for day, word in zip(SCOPE, words, strict=True)),
        "attempts": (
            {"chunk_id": "c0002", "fence": 2, "owner": "host-a/4711", "partitions": list(SCOPE[15:30]),
             "started_at": "2026-02-14T10:00:00+00:00", "heartbeat_at": "2026-02-14T10:00:30+00:00",
             "lease_left_seconds": 45.0},
        ),
        "failures": (
            {"chunk_id": "c0003", "partitions": list(SCOPE[9:15]), "code": "transform-failed",
             "error": "division by zero in transforms/daily_revenue.py:41"},
        ),
        "approvals": (APPROVAL,),
        "publications": (),
        "next": f"errata run {RUN}",
        "cost": CostView(154, 308, "0.0065", (110, 150), "0.0063", "1 chunk of this run: 6.1 MiB per core-second",
                         2, 3, 1, 640_000_000, 21_000_000, 9_400_000, 15),
        "canary": {"partitions": ["2026-02-14"], "checks": 9, "warnings": ["sum(revenue_usd)"]},
        "determinism": {"chunks": {"c0001": "9be2"}, "parallelism": [3, 8]},
        "held": "no new chunk: live-lag is 950 since 2026-02-14T10:00:30Z",
    }  # fmt: skip
    if changes.get("grain", "day") != "day":
        fields["canary"] = None
    return StatusView(**{**fields, **changes})  # type: ignore[arg-type]


def published_status() -> StatusView:
    words = ["rolled_back" if day == "2026-01-03" else "published" for day in SCOPE]
    undone = {**PUBLICATION, "publication_id": f"{RUN}-r2-81d0e4", "kind": "rollback", "partitions": ["2026-01-03"],
              "reason": "the bank asks to wait"}  # fmt: skip
    return status(
        state="published",
        chunks=RunCounts(3, 3, 0, 0, 0, 0),
        recomputed=0,
        partitions=tuple(PartitionView(day, word) for day, word in zip(SCOPE, words, strict=True)),
        attempts=(),
        failures=(),
        publications=(PUBLICATION, undone),
        next=f'errata rollback {RUN} [--partitions …] --reason "…"',
    )


def runs() -> StatusView:
    line = RunLine(
        RUN, "fin.daily_revenue", "part_published", 45, SCOPE[0], SCOPE[-1], "ana", REASON,
        "2026-02-14T08:55:10+00:00", RunCounts(3, 3, 0, 0, 0, 0),
    )  # fmt: skip
    other = RunLine(
        "bf-20260201-daily-revenue-00aa11bb", "fin.daily_revenue", "failed", 1, "2026-01-30", "2026-01-30", "bo",
        "late adjustments", "2026-02-01T07:00:00+00:00", RunCounts(2, 1, 0, 1, 0, 0),
    )  # fmt: skip
    return StatusView(runs=(line, other))


def why() -> WhyView:
    live = HistoryView(
        "live", "2026-01-18T03:04:00+00:00", None, None, None, None, None, None,
        {"account_id": "A-10033", "revenue_usd": "1204.11", "produced_by_run_id": "daily"},
        snapshot_id="5500000000000000001", application="daily-0017",
    )  # fmt: skip
    published = HistoryView(
        "published", "2026-02-15T09:41:00+00:00", RUN, REASON, "ana", "bo", "2026-02-15T09:41:00+00:00",
        {"account_id": "A-10033", "revenue_usd": "1204.11", "produced_by_run_id": "daily"},
        {"account_id": "A-10033", "revenue_usd": "1021.76", "produced_by_run_id": RUN},
        snapshot_id="7719003344556677889", manifest_digest=DIGEST, published_by="bo", checks_passed=6,
    )  # fmt: skip
    return WhyView("lake.fin.daily_revenue", "2026-01-17", {"account_id": "A-10033"}, (live, published))


def accepted() -> RunsView:
    days, later = expand_range(Grain.DAY, "2026-01-01", "2026-02-15"), "bf-20260219-daily-revenue-11c0ffee"
    published, back = "2026-02-15T09:41:00+00:00", "2026-02-20T08:00:00+00:00"

    def span(names: Sequence[str], run: str | None, action: str, at: str, person: str) -> AcceptedSpan:
        table = "lake.fin.daily_revenue"
        return AcceptedSpan(
            "fin.daily_revenue", table, "day", tuple(names), run, action, at, person, f"{run}-p1-3fa9c2"
        )

    spans = (
        span(days[:-8], RUN, "published", published, "bo"),
        span(days[-8:-3], later, "published", back, "dana"),
        span(days[-3:], None, "rolled_back", back, "bo"),
    )
    return RunsView(accepted_at="2026-02-20T18:30:00Z", accepted=spans)


def impact(**more: object) -> ImpactView:
    """Two days that a month, a rolling sum, dbt and people read."""
    month = TouchedView(
        "fin.monthly", "lake.fin.monthly", "finance", "month", ("2026-01",), None, all=False,
        reads=(ReadingView("days", "fin.daily_revenue"),), consumers=("board report",), located=True,
    )  # fmt: skip
    rolling = TouchedView(
        "fin.rolling", "lake.fin.rolling", "finance", "day", days("2026-01-01", 3), None, all=False,
        reads=(ReadingView("days", "fin.daily_revenue"), ReadingView("months", "fin.monthly")),
        absent=("2026-01-04",), located=True,
    )  # fmt: skip
    scores = TouchedView(
        "crm.scores", "lake.crm.scores", "crm", "value", ("EU", "US"), None, all=True,
        reads=(ReadingView("months", "fin.monthly", "input months is read whole"),), located=True,
    )  # fmt: skip
    balance = TouchedView(
        "fin.balance", "lake.fin.balance", "finance", "day", (), "2026-01-01", all=False,
        reads=(ReadingView("days", "fin.rolling"),),
    )  # fmt: skip
    model = DbtModelView(
        "model.a.fct_revenue", "fct_revenue", ("lake.fin.daily_revenue",), "business_date", "incremental",
        "marts.fct_revenue", "models/fct_revenue.sql",
    )  # fmt: skip
    report = DbtModelView("model.a.rpt", "rpt", (model.unique_id,), None, "view", "marts.rpt", "models/rpt.sql")
    exposure = ExposureView(
        "exposure.a.kpi",
        "KPI board",
        "dashboard",
        "BI",
        "bi@example.org",
        "https://bi.example.org",
        (report.unique_id,),
    )
    view = ImpactView(
        "fin.daily_revenue", "lake.fin.daily_revenue", "day", days("2026-01-01", 2),
        products=(month, rolling, scores, balance), dbt=(model, report), exposures=(exposure,),
        consumers=("finance dashboards", "board report"),
    )  # fmt: skip
    return replace(view, **more)  # type: ignore[arg-type]


def commits() -> CommitsView:
    spoilt = CommitView(
        "7800000000000000002", "2026-02-16T02:10:00.000Z", "overwrite", "job", "adhoc-fix-0042", 118, 120, 0,
        before="7719003344556677889",
    )  # fmt: skip
    compacted = CommitView(
        "7719003344556677889", "2026-02-15T22:00:00.000Z", "replace", "compaction", "maintenance", 120, 120, 0,
        before="7719003344556677888",
    )  # fmt: skip
    ours = CommitView(
        "7719003344556677888", "2026-02-15T09:41:00.000Z", "overwrite", "errata", "errata", 120, 120, 3, before=None,
        run_id=RUN, publication_id=f"{RUN}-p1-3fa9c2", accepted=True,
    )  # fmt: skip
    next_ = 'errata plan fin.daily_revenue --partitions 2026-01-17 --restore 7719003344556677889 --reason "…"'
    return CommitsView(
        "lake.fin.daily_revenue", "fin.daily_revenue", "2026-01-17", (spoilt, compacted, ours), complete=False,
        next=next_,
    )  # fmt: skip


def restoring() -> PlanView:
    at = {"snapshot_id": "7719003344556677889", "at": "2026-02-15T22:00:00.000Z", "asked": "month_end", "columns": {}}
    verdict = VerdictView("restore", "warn", "removes what adhoc-fix-0042 wrote to 2026-01-17: snapshot 78 (overwrite)")
    made = plan()
    return replace(made, kind="restore", restored=at, verdicts=(*made.verdicts, verdict))


def why_restored() -> WhyView:
    live, published = why().history
    event = replace(published, restored="5500000000000000001", reason="adhoc-fix wrote zeros (INC-77)")
    return replace(why(), history=(live, event))


SET_BACK = SetBackView(
    "lake.fin.daily_revenue", "day", SCOPE, RUN, f"{RUN}-p1", "publish", "2026-02-15T09:41:00+00:00",
    "7719003344556677889", "2026-02-16T08:00:00+00:00", "5500000000000000001",
    'errata plan fin.daily_revenue --partitions 2026-01-01..2026-02-14 --restore 7719003344556677889 --reason "…"',
)  # fmt: skip


def why_rows() -> WhyView:
    """Two rows fit, and a job wrote one of them since."""
    live, published = why().history
    late = replace(live, at="2026-02-16T03:04:00+00:00", before=published.after, after={}, added_rows=1, removed_rows=2)
    rows = tuple(
        RowHistoryView({"account_id": "A-10033", "currency": currency}, history)
        for currency, history in (("EUR", (live, published, late)), ("USD", (live, replace(published, after=None))))
    )
    return replace(why(), history=(), rows=rows, note="the key is there more than once in a snapshot")


def why_set_back() -> WhyView:
    return replace(why(), set_back=SET_BACK)


def why_alone() -> WhyView:
    live, published = why().history
    event = replace(published, released_by="bo", published_by="airflow", break_glass=BROKEN, single_user=True)
    return replace(why(), history=(live, event))


KEY = "5959c7e4fc9958eb060aae125544468001a12b4bfd65a82644838ff618d8647b"


def audit(*, ok: bool = True) -> AuditView:
    if ok:
        return AuditView(ok=True, entries=41, first_bad=None, reason=None, head=HEAD)
    return AuditView(ok=False, entries=41, first_bad=17, reason="its hash does not match its content", head=HEAD)


def gaps(*, ok: bool = False) -> GapsView:
    closed = GapView(
        "7013", "2026-02-15T04:00:00Z", "notebook (local-17)", "overwrite", ("2026-01-13",), (), {"2026-01-13": RUN}
    )
    still = GapView(
        "7019", "2026-02-16T03:10:00Z", "unknown", "append", ("2026-01-14", "2026-01-15"), ("2026-01-15",),
        {"2026-01-14": RUN},
    )  # fmt: skip
    compacted = ForeignCommitView("7021", "2026-02-16T05:00:00Z", "nightly-compaction", "replace", ("2026-01-14",))
    told = ProductGapsView(
        "fin.daily_revenue", "lake.fin.daily_revenue", "day", "2026-02-14T09:30:00Z", complete=False,
        gaps=(closed,) if ok else (still, closed), maintenance=(compacted,),
        next="" if ok else 'errata plan fin.daily_revenue --partitions 2026-01-15 --kind attest --reason "…"',
    )  # fmt: skip
    return GapsView(ok, (told, ProductGapsView("fin.new", "lake.fin.new", "day", None, complete=True)))


def witnessed(*, signatures: str = "checked", lag: int = 0) -> AuditView:
    heads = HeadsView(12, 38, 3, signatures, (KEY,) if signatures == "checked" else (), lag, late=lag > 86_400)
    return AuditView(ok=True, entries=41, first_bad=None, reason=None, head=HEAD, heads=heads)


def head() -> HeadView:
    return HeadView(
        41, HEAD, "2026-02-15T09:41:07Z", "0123456789abcdef", "finsight", KEY,
        ("/mnt/worm/errata-heads/errata-head-0123456789abcdef-000000000041.json",), already=False, envelope="{}",
    )  # fmt: skip


def erased() -> ErasedView:
    return ErasedView(
        "subject-4489827f97548bf57bb7", 12, already=False, warnings=("errata.yaml still lists them under people",)
    )  # fmt: skip


def listed() -> ListedView:
    return ListedView(
        "lake.privacy.erased", 2, already=1, watermark="814", products={"fin.daily_revenue": ("account_id",)},
        judge_again=(RUN,),
    )  # fmt: skip


def erasure_places() -> ErasureWhereView:
    places = (
        Place("live table", "lake.fin.daily_revenue", "holds", None,
              "its owner deletes the rows, and plans without them"),
        Place("undo set", f"lake.fin.daily_revenue@errata_{RUN}-p1-3fa9c2_undo", "holds", "2026-04-01",
              "errata cleanup, then expire_snapshots"),
        *(Place("tag", f"lake.fin.daily_revenue@errata_{RUN}-p1-3fa9c2_{end}", "holds", "2026-03-01",
                "errata cleanup, then expire_snapshots") for end in ("pre", "pub")),
        Place("time travel", "snow:FIN.DAILY_REVENUE", "unknown", "2026-05-22",
              "Snowflake: at most 90 days of time travel and 7 of fail-safe after the last delivery"),
    )  # fmt: skip
    return ErasureWhereView(2, 1, places, "2026-02-15")


def erasure_proof(left: Mapping[str, str] | None = None) -> ErasureProofView:
    return ErasureProofView(2, "2026-04-02", left or {}, 61)


def redaction(*, found: bool = True) -> RedactionView:
    if not found:
        return RedactionView(("raw.sales",), (), {}, ())
    files = (
        RedactedFileView("5d8e0f1c2b3a", "raw.sales", "2026-01-17.jsonl", "below 5", "9a7b6c5d4e3f"),
        RedactedFileView("77aa88bb99cc", "raw.sales", "2026-01-18.jsonl", "41", None),
    )
    return RedactionView(("raw.sales",), files, {"c0ffee112233": "it has no column account_id"}, (RUN,))


def log() -> tuple[AuditEntry, ...]:
    ana = Actor("ana", "ana", "host-a")
    return (
        AuditEntry(1, GENESIS, HEAD, "2026-02-14T08:55:10.120000+00:00", ana, "run.planned", RUN,
                   {"digest": DIGEST, "partitions": list(SCOPE), "verdicts": [["range", "ok"]],
                    "move": {"from": None, "to": "planned"}}),
        AuditEntry(2, HEAD, HEAD[::-1], "2026-02-14T09:12:33+00:00", Actor("bo", "root", "host-b", single_user=True),
                   "run.approved", RUN, {"note": "checked", "move": {"from": "planned", "to": "approved"}}),
    )  # fmt: skip


def evidence() -> EvidenceView:
    return EvidenceView(
        RUN, "fin.daily_revenue", "published", DIGEST, ("README.txt", "cover.html", "manifest.json"), 183_204, HEAD,
        HEAD[::-1], {"seq": 41, "hash": HEAD, "at": "2026-02-15T09:41:07Z"},
        ("no summary of the diff: snapshot 7719 has expired",),
    )  # fmt: skip


def cleanup(*, dry_run: bool = False) -> CleanupView:
    gone = ({"table": "lake.fin.daily_revenue", "ref": f"errata_{RUN}", "run_id": RUN},)
    kept = (
        {"table": "lake.fin.daily_revenue", "ref": f"errata_{RUN}-p1-3fa9c2_undo", "run_id": RUN,
         "why": "undo until 30d after publication"},
    )  # fmt: skip
    return CleanupView(gone, kept, dry_run)


def quarantined() -> QuarantineView:
    """Rows of two eras set aside for three reasons, one column masked."""
    raw = "file:///lake/raw/transactions/business_date=2026-01-03/part-0.parquet"
    return QuarantineView(
        run_id=RUN,
        product="fin.daily_revenue",
        state="staged",
        grain="day",
        table="lake.fin.errata_quarantine_bf_20260214_daily_revenue_7f3a21c0",
        inputs={
            "transactions": {
                "rows_in": 734_709,
                "rows_used": 734_695,
                "rows_quarantined": 8,
                "rows_suppressed": 6,
                "rows_set_aside": 2,
            }
        },
        reasons=(
            QuarantineReason("transactions", "cast", "cast booked_on", 7, SCOPE[2:5]),
            QuarantineReason("transactions", "rule", "booked in the future", 1, SCOPE[9:10]),
            QuarantineReason("transactions", "transform", "unknown account", 2, SCOPE[::2]),
        ),
        rows=(
            SetAsideRow(
                "transactions", SCOPE[2], "cast", "cast booked_on", "c0003", raw,
                {"acct": "•••", "amt": "12.00", "booked_on": "2026-02-30"},
            ),
        ),
        masked=("account_id",),
    )  # fmt: skip


def nothing_set_aside() -> QuarantineView:
    """A run whose inputs have no rules."""
    return QuarantineView(RUN, "fin.daily_revenue", "staged", "day", None, {}, (), ())


def stale() -> StaleView:
    """Four stale days by what was recorded, one by time, one that waits, and a product that cannot be read."""
    name, table = "fin.daily_revenue", "lake.fin.daily_revenue"
    event = "changed: overwrite by ingest (snapshot 7714)"

    def reason(*partitions: str) -> StaleReasonView:
        return StaleReasonView("transactions", "recorded", f"{partitions[0]} {event}", event, partitions, grain="day")

    old, late = "the transform was version 1.0.0 and is 1.1.0", "2026-01-20 is not complete: no _SUCCESS"
    found = [
        StalePartitionView(name, "2026-01-12", "current", "recorded"),
        *(StalePartitionView(name, day, "stale", "recorded", (reason(day),)) for day in days("2026-01-13", 4)),
        StalePartitionView(name, "2026-01-17", "stale", "time", (StaleReasonView(None, "time", old, old),)),
        StalePartitionView(
            name, "2026-01-20", "waiting", "recorded", (StaleReasonView("transactions", "recorded", late, late),)
        ),
    ]
    plan = f'errata plan {name} --stale --reason "late data"'
    products = (
        StaleProductView(name, table, "day", 7, 5, 1, next=plan),
        StaleProductView("fin.monthly", "lake.fin.monthly", "month", 0, 0, 0, problem="catalog lake did not answer"),
        StaleProductView("fin.rolling", "lake.fin.rolling", "day", 7, 0, 0),
    )
    return StaleView(ok=False, products=products, partitions=tuple(found))


def consumers() -> ConsumersView:
    """A dashboard, and a stream with a repaired checkpoint."""
    board = ConsumerEffectView(
        "exec-dashboard", "lags", "is refreshed and read back after it", "may show old rows until it is refreshed",
        "reader", "bi",
    )  # fmt: skip
    fraud = ConsumerEffectView(
        "fraud-stream", "stops", "Errata prepares a repaired copy of its checkpoint",
        "stops at the overwrite snapshot; it is at snapshot 7719, it has read everything", "iceberg-stream",
        "fraud-team", "s3://lake/checkpoints/fraud", RUN, repair_steps(),
    )  # fmt: skip
    return ConsumersView(
        "fin.daily_revenue", "lake.fin.daily_revenue", "day", "overwrite", days("2026-01-01", 3), (board, fraud)
    )


def repair_steps() -> tuple[str, ...]:
    """What a person does with a repaired checkpoint."""
    tag = f"errata_{RUN}-p1-3fa9c2_for_fraud-stream"
    return (
        "stop fraud-stream",
        f"replace the partitions that it does not see in what it writes: SELECT * FROM lake.t VERSION AS OF '{tag}'",
        f"start it with checkpointLocation s3://lake/checkpoints/fraud.errata-{RUN}-p1-3fa9c2-0c51e7aa",
        f"errata consumers confirm {RUN} fraud-stream",
    )


def confirmed(*, is_done: bool = False) -> ConfirmView:
    """A stream that was started on a copy, and has another start before it."""
    place = f"s3://lake/checkpoints/fraud.errata-{RUN}-p1-3fa9c2-71ab03ce"
    return ConfirmView(RUN, "fraud-stream", "started", place, is_done=is_done, steps=() if is_done else repair_steps())


def outbox_item(number: int, kind: str, consumer: str, state: str, **fields: Any) -> OutboxItemView:
    """An item of the outbox."""
    values: dict[str, Any] = {
        "attempts": 1, "last_error": None, "event": "published", "key": f"{RUN}-p1-3fa9c2/published/{kind}/{consumer}",
        "table": "lake.fin.daily_revenue", "partitions": days("2026-01-13", 2), "owed_at": "2026-02-15T11:00:00Z",
        "age_seconds": 4000, "next_at": None, "ended_at": None,
    }  # fmt: skip
    return OutboxItemView(id=str(number), kind=kind, consumer=consumer, run_id=RUN, state=state, **(values | fields))


def outbox(*, all_items: bool = False) -> OutboxView:
    """A message whose receiver is gone, a cache that does not answer, and what is over."""
    gone = outbox_item(17, "tell", "exec-dashboard", "failed", attempts=8, last_error="410 Gone")
    slow = outbox_item(
        18, "recover", "exec-dashboard", "owed", last_error="redis did not answer within 30 s", attempts=3,
        next_at="2026-02-15T12:08:30+00:00",
    )  # fmt: skip
    paid = outbox_item(15, "corrections", "", "paid", ended_at="2026-02-15T11:00:03Z")
    waived = outbox_item(
        16, "recover", "old-dashboard", "waived", attempts=8, last_error="connection refused", waived_by="bo",
        waived_why="it is switched off", waived_ready=True,
    )  # fmt: skip
    steps = ("errata outbox retry 17", f"errata deliver {RUN}")
    items = (paid, waived, gone, slow) if all_items else (gone, slow)
    return OutboxView(items, RUN if all_items else None, all_items, steps)


def outbox_decision(action: str) -> OutboxDecisionView:
    """Item 17, to be tried again or given up."""
    item = outbox_item(17, "tell", "exec-dashboard", "owed", attempts=0, last_error="410 Gone")
    if action == "retry":
        return OutboxDecisionView(action, (item,), next=(f"errata deliver {RUN}",))
    item = replace(item, state="waived", waived_by="bo", waived_why="switched off")
    return OutboxDecisionView(action, (item,), next=(f"errata status {RUN}",))


def delivery(*, ok: bool = False) -> DeliverView:
    """Three items paid; the rest as in the outbox."""
    if ok:
        return DeliverView(ok=True, paid=3, items=(), warnings=(), seconds=1.25)
    found = outbox()
    return DeliverView(ok=False, paid=3, items=found.items, warnings=(), seconds=60.0, next=found.next)


def backlog() -> DeliverView:
    """A receiver that is away: many messages wait, and its first one has failed."""
    error = "channel bi (bi.example): the address answered HTTP 503"
    waiting = tuple(outbox_item(100 + n, "tell", "exec-dashboard", "owed", attempts=0) for n in range(1_200))
    gone = outbox_item(1_300, "tell", "board", "failed", attempts=8, last_error=error)
    warnings = (f"item 1300 (tell to board) of {RUN} is not paid: {error}; it failed after 8 attempts",)
    return DeliverView(ok=False, paid=0, items=(*waiting, gone), warnings=warnings, seconds=10.0, next=outbox().next)


def owing_status() -> StatusView:
    """A published run that still owes something."""
    return replace(
        published_status(), recovery="pending", recoveries=recoveries(), owed=outbox().items,
        next="errata outbox retry 17",
    )  # fmt: skip


def copy_lines() -> tuple[CopyLine, ...]:
    """Copies in every state."""
    found = days("2026-01-13", 2)
    return (
        CopyLine("pg", "fin.daily_revenue", "delivered", found, "2026-02-15T12:01:40Z", required=True),
        CopyLine(
            "snow", "DAILY_REVENUE", "failed", found, None, required=True, missing=found[1:], code="copy-changed",
            error="snow:DAILY_REVENUE holds other rows than the last delivery left there, in 2026-01-14: errata "
            "deliver fin.daily_revenue --baseline --partitions 2026-01-14",
        ),
        CopyLine("old", "daily", "pending", found, None, missing=found, error="old cannot be reached: TimedOut"),
        CopyLine("bi", "daily", "waived", found, None, missing=found, waived_by="bo", waived_why="it is switched off"),
    )  # fmt: skip


def baseline(*, is_accepted: bool = False) -> BaselineView:
    """A copy that another job loaded, with two days that differ."""
    parts = [BaselinePartition(day, 4_680, 4_680, is_same=True) for day in days("2026-01-13", 3)]
    parts[1] = replace(parts[1], copy_rows=4_679, is_same=False)
    parts[2] = replace(parts[2], copy_rows=0, is_same=False)
    step = "errata deliver fin.daily_revenue"
    return BaselineView(
        "fin.daily_revenue", "day", "7720003344556677889", (BaselineCopy("pg", "fin.daily_revenue", tuple(parts)),),
        is_accepted=is_accepted, reason="loaded by the old job" if is_accepted else "",
        retried=("19",) if is_accepted else (), next=(step if is_accepted else f'{step} --baseline --reason "…"',),
    )  # fmt: skip


def copies_check() -> CopiesCheckView:
    """Copies that are fine, changed by others, behind, and out of reach."""
    found = days("2026-01-13", 3)
    changed = DifferingPartition(found[1], 4_680, 4_679, "changed")
    return CopiesCheckView(
        "fin.daily_revenue", "day", "7720003344556677889",
        (
            CheckedCopy("pg", "fin.daily_revenue", 44, moved_on=("2026-02-14",), baseline=("2025-12-31",)),
            CheckedCopy("snow", "DAILY_REVENUE", 45, (changed,), unknown=("2026-03-01",)),
            CheckedCopy("bi", "daily", 45, (DifferingPartition(found[2], 4_680, 0, "undelivered"),), waived_by="bo"),
            CheckedCopy("new", "daily"),
            CheckedCopy("old", "daily", error="old cannot be reached: TimedOut"),
        ),
        ok=False,
        next=("errata deliver fin.daily_revenue",
              'errata plan fin.daily_revenue --kind repair --copies --partitions 2026-01-14 --reason "…"'),
    )  # fmt: skip


def recoveries() -> tuple[RecoveryLine, ...]:
    """Consumers in every state."""
    return (
        RecoveryLine("exec-dashboard", "pending", "2026-02-15T12:30:00Z", 1330,
                     error="redis did not answer within 30 s"),
        RecoveryLine("old-dashboard", "waived", waived_by="bo", waived_why="the dashboard is switched off"),
        RecoveryLine("regulator", "failed", "2026-02-15T11:30:00Z", -2270, is_late=True,
                     error="regulator shows 12 for 2026-01-13, expected 6"),
        RecoveryLine("ml-features", "recovered", is_late=True),
        RecoveryLine("risk-job", "pending", waits="its job has to read the corrected partitions again; the watermark "
                     "is 2026-01-12"),
    )  # fmt: skip


def hold(**fields: Any) -> HoldView:
    """A hold that its owner has not acknowledged."""
    values: dict[str, Any] = {
        "hold_id": f"{RUN}-h1-3fa9c2", "run_id": RUN, "consumer": "exec-dashboard", "wave": 1, "state": "open",
        "partitions": days("2026-01-13", 2), "opened_at": "2026-02-15T11:00:00Z",
        "not_before": "2026-02-15T11:10:00+00:00", "until": "2026-02-15T13:00:00+00:00", "acknowledge": True,
        "on_timeout": "stop",
    }  # fmt: skip
    return HoldView(**(values | fields))


def acknowledged() -> HoldView:
    """The same, acknowledged."""
    return hold(state="acknowledged", acknowledged_by="di", acknowledged_at="2026-02-15T11:04:00Z")


def ready(*, ok: bool = False) -> ReadyView:
    """Two days that are held, between days that may be read."""
    known = dict.fromkeys(days("2026-01-10", 3), ("ready", "bf-20260101-daily-revenue-00000001", "7"))
    held = dict.fromkeys(days("2026-01-13", 2), ("announced" if ok else "held", RUN, "7"))
    found = [
        PartitionReadyView(name, state, run, snapshot, "2026-02-15T11:00:00Z")
        for name, (state, run, snapshot) in (known | held).items()
    ]
    return ReadyView("lake.fin.daily_revenue", "day", ok, (*found, PartitionReadyView("2026-01-15", "ready")))


def holding_status() -> StatusView:
    """A validated run whose consumers are held."""
    others = hold(consumer="fraud-stream", acknowledge=False), replace(acknowledged(), consumer="ml-features")
    return replace(published_status(), holds=(hold(), *others))


def late() -> LateView:
    """One product that ran under a standing approval, one that a person has to approve."""
    done = LateProductView(
        "fin.daily_revenue", "day", "run", days("2026-01-13", 2), taken=days("2026-01-13", 2), run_id=RUN,
        state="published", standing="ab12cd34ef567890",
    )  # fmt: skip
    waiting = LateProductView(
        "fin.rolling", "day", "run", days("2026-01-13", 4), settling=("2026-01-16",), taken=("2026-01-13",),
        claimed={"bf-1": ("2026-01-14",)}, run_id="bf-2", state="planned",
        why="the standing approval ab12cd34ef56 does not count: it is suspended: bf-9 was rolled back",
        next="errata approve bf-2",
    )  # fmt: skip
    return LateView(ok=False, products=(done, waiting))


def standing(**more: object) -> StandingView:
    """A standing approval that counts and was used once."""
    view = StandingView(
        "fin.daily_revenue", DIGEST, "c" * 64, "14d", 7, 4, 14, {"rows": "5%", "sum(revenue_usd)": "10%"}, "90d",
        counts=True, why="",
        decisions=(StandingDecisionView("bo", "approved", "2026-02-14T10:00:00Z", "every night"),),
        uses=(StandingUseView(RUN, "published", 2, "2026-02-15T02:00:00Z"),),
    )  # fmt: skip
    return replace(view, **more)  # type: ignore[arg-type]


def standings() -> StandingsView:
    """One that counts and one that was revoked."""
    ended = standing(counts=False, why="bo revoked it at 2026-02-16 09:00 UTC: books are closed", uses=())
    return StandingsView((standing(), ended))


def note() -> NoteView:
    return NoteView(RUN, "ana", "2026-02-15T09:30:00.000Z", "rates of January came late")


def runbook() -> RunbookView:
    actions = {
        "reason": StepAction("ana", "2026-02-14T08:00:00.000Z", "wrong rates since 1 January"),
        "approval": StepAction("bo", "2026-02-14T08:30:00.000Z", "over 7f3a21c0d5e2"),
        "published": StepAction("bo", "2026-02-14T11:00:00.000Z", "45 of 45 partitions, 1 rolled back"),
    }
    unneeded = {"sinks": "the product declares no sinks"}
    steps = list_steps(actions, unneeded, {"notes": f'errata note {RUN} "…"'})
    return RunbookView(RUN, "fin.daily_revenue", "published", steps, (note(),))


def metrics() -> MetricsView:
    value = MetricValue({"product": "fin.daily_revenue", "state": "running"}, 1.0)
    return MetricsView((MetricView("errata_runs", "gauge", "Runs in the ledger, by state.", (value,)),))
