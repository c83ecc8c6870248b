"""What commands answer: frozen values whose field names are the ``--json`` promise. Pure.

The command line renders one view as text or as JSON; Python callers get the view itself.
"""

from __future__ import annotations

from errata.model.views.audited import AuditView, CleanupView, ErasedView, HeadsView, HeadView, KeyView, ListedView
from errata.model.views.computed import (
    QuarantineReason,
    QuarantineView,
    RunCounts,
    RunView,
    SetAsideRow,
    StateView,
    ValidateView,
)
from errata.model.views.decided import ApprovalView, BreakGlassView, DecisionView, QuorumView, ReleasedView, ReleaseView
from errata.model.views.noticed import LateInputView, LiveWriteView
from errata.model.views.planned import ChunkView, DeadlineView, EstimateView, InputView, PlanView, VerdictView
from errata.model.views.published import (
    DarkView,
    FreezeView,
    FrozenView,
    GroupsView,
    GroupView,
    HazardView,
    PublishView,
    RollbackView,
)
from errata.model.views.standing import CostView, PartitionView, RunLine, SetBackView, StatusView
from errata.model.views.told import (
    AcceptedSpan,
    CommitsView,
    CommitView,
    HistoryView,
    RowHistoryView,
    RunsView,
    WhyView,
)

__all__ = [
    "AcceptedSpan",
    "ApprovalView",
    "AuditView",
    "BreakGlassView",
    "ChunkView",
    "CleanupView",
    "CommitView",
    "CommitsView",
    "CostView",
    "DarkView",
    "DeadlineView",
    "DecisionView",
    "ErasedView",
    "EstimateView",
    "FreezeView",
    "FrozenView",
    "GroupView",
    "GroupsView",
    "HazardView",
    "HeadView",
    "HeadsView",
    "HistoryView",
    "InputView",
    "KeyView",
    "LateInputView",
    "ListedView",
    "LiveWriteView",
    "PartitionView",
    "PlanView",
    "PublishView",
    "QuarantineReason",
    "QuarantineView",
    "QuorumView",
    "ReleaseView",
    "ReleasedView",
    "RollbackView",
    "RowHistoryView",
    "RunCounts",
    "RunLine",
    "RunView",
    "RunsView",
    "SetAsideRow",
    "SetBackView",
    "StateView",
    "StatusView",
    "ValidateView",
    "VerdictView",
    "WhyView",
]
