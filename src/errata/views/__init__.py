"""Results of commands: frozen values whose fields are the ``--json`` output. Pure.

The command line renders one view as text or as JSON; Python callers get the view itself. A command imports the views
that it returns, and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.late_import import build_late_import

if TYPE_CHECKING:
    from errata.model.run import RunCounts
    from errata.views.approval import ApprovalView, BreakGlassView, DecisionView, QuorumView, ReleasedView, ReleaseView
    from errata.views.audit import (
        AuditView,
        CleanupView,
        ErasedView,
        ErasureProofView,
        ErasureWhereView,
        HeadsView,
        HeadView,
        KeyView,
        LedgerView,
        ListedView,
        RedactedFileView,
        RedactionView,
    )
    from errata.views.copies import BaselineView, CopiesCheckView, CopyLine
    from errata.views.history import (
        AcceptedSpan,
        CommitsView,
        CommitView,
        HistoryView,
        RowHistoryView,
        RunsView,
        WhyView,
    )
    from errata.views.impact import DbtModelView, ExposureView, ImpactView, ReadingView, TellView, TouchedView
    from errata.views.live_writes import LateInputView, LiveWriteView
    from errata.views.outbox import DeliverView, OutboxDecisionView, OutboxItemView, OutboxView
    from errata.views.plan import (
        ChunkView,
        DeadlineView,
        EstimateView,
        InputView,
        LogView,
        PlanView,
        RuleChangeView,
        SnapshotView,
        VerdictView,
    )
    from errata.views.publish import (
        DarkView,
        FreezeView,
        FrozenView,
        HazardView,
        PublishView,
        RollbackView,
        WaveTurnView,
        WaveView,
    )
    from errata.views.readiness import HoldView, PartitionReadyView, ReadyView
    from errata.views.run import (
        QuarantineReason,
        QuarantineView,
        RunView,
        SetAsideRow,
        StateView,
        ValidateView,
    )
    from errata.views.runbook import NoteView, RunbookView
    from errata.views.status import CostView, PartitionView, RunLine, SetBackView, StatusView

__all__ = [
    "AcceptedSpan",
    "ApprovalView",
    "AuditView",
    "BaselineView",
    "BreakGlassView",
    "ChunkView",
    "CleanupView",
    "CommitView",
    "CommitsView",
    "CopiesCheckView",
    "CopyLine",
    "CostView",
    "DarkView",
    "DbtModelView",
    "DeadlineView",
    "DecisionView",
    "DeliverView",
    "ErasedView",
    "ErasureProofView",
    "ErasureWhereView",
    "EstimateView",
    "ExposureView",
    "FreezeView",
    "FrozenView",
    "HazardView",
    "HeadView",
    "HeadsView",
    "HistoryView",
    "HoldView",
    "ImpactView",
    "InputView",
    "KeyView",
    "LateInputView",
    "LedgerView",
    "ListedView",
    "LiveWriteView",
    "LogView",
    "NoteView",
    "OutboxDecisionView",
    "OutboxItemView",
    "OutboxView",
    "PartitionReadyView",
    "PartitionView",
    "PlanView",
    "PublishView",
    "QuarantineReason",
    "QuarantineView",
    "QuorumView",
    "ReadingView",
    "ReadyView",
    "RedactedFileView",
    "RedactionView",
    "ReleaseView",
    "ReleasedView",
    "RollbackView",
    "RowHistoryView",
    "RuleChangeView",
    "RunCounts",
    "RunLine",
    "RunView",
    "RunbookView",
    "RunsView",
    "SetAsideRow",
    "SetBackView",
    "SnapshotView",
    "StateView",
    "StatusView",
    "TellView",
    "TouchedView",
    "ValidateView",
    "VerdictView",
    "WaveTurnView",
    "WaveView",
    "WhyView",
]

_NAMES = {
    "approval": ("ApprovalView", "BreakGlassView", "DecisionView", "QuorumView", "ReleasedView", "ReleaseView"),
    "audit": (
        "AuditView",
        "CleanupView",
        "ErasedView",
        "ErasureProofView",
        "ErasureWhereView",
        "HeadsView",
        "HeadView",
        "KeyView",
        "LedgerView",
        "ListedView",
        "RedactedFileView",
        "RedactionView",
    ),
    "copies": ("BaselineView", "CopiesCheckView", "CopyLine"),
    "history": ("AcceptedSpan", "CommitsView", "CommitView", "HistoryView", "RowHistoryView", "RunsView", "WhyView"),
    "runbook": ("NoteView", "RunbookView"),
    "impact": ("DbtModelView", "ExposureView", "ImpactView", "ReadingView", "TellView", "TouchedView"),
    "live_writes": ("LateInputView", "LiveWriteView"),
    "outbox": ("DeliverView", "OutboxDecisionView", "OutboxItemView", "OutboxView"),
    "plan": (
        "ChunkView",
        "DeadlineView",
        "EstimateView",
        "InputView",
        "LogView",
        "PlanView",
        "RuleChangeView",
        "SnapshotView",
        "VerdictView",
    ),
    "publish": (
        "DarkView",
        "FreezeView",
        "FrozenView",
        "WaveTurnView",
        "WaveView",
        "HazardView",
        "PublishView",
        "RollbackView",
    ),
    "readiness": ("HoldView", "PartitionReadyView", "ReadyView"),
    "run": ("QuarantineReason", "QuarantineView", "RunCounts", "RunView", "SetAsideRow", "StateView", "ValidateView"),
    "status": ("CostView", "PartitionView", "RunLine", "SetBackView", "StatusView"),
}

__getattr__ = build_late_import(__name__, {name: home for home, names in _NAMES.items() for name in names})
