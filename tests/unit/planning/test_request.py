from __future__ import annotations

import pytest

from errata.errors import UsageError
from errata.model.kind import KINDS
from errata.model.manifest import Override
from errata.model.partition import Grain
from errata.planning.request import resolve_partitions
from unit.planning.worlds import ask


def test_a_request_without_a_range_is_refused_and_never_means_everything():
    """Half a range is no range either."""
    for more in ({"start": None, "end": None}, {"end": None}, {"start": None}):
        with pytest.raises(UsageError, match="without a range"):
            resolve_partitions(ask(**more), Grain.DAY)


def test_a_range_is_half_open_and_a_list_has_inclusive_spans():
    """Both give partitions oldest first, without repeats."""
    assert resolve_partitions(ask(), Grain.DAY)[-1] == "2026-01-07"
    listed = resolve_partitions(ask(partitions="2026-01-10..2026-01-11,2026-01-03,2026-01-10"), Grain.DAY)
    assert listed == ("2026-01-03", "2026-01-10", "2026-01-11")
    assert resolve_partitions(ask(partitions=["2026-01-03", "2026-01-01", "2026-01-03"]), Grain.DAY) == (
        "2026-01-01",
        "2026-01-03",
    )


def test_range_and_list_together_are_refused():
    """A request says its scope once."""
    with pytest.raises(UsageError, match="both"):
        resolve_partitions(ask(partitions="2026-01-01", start="2026-01-01"), Grain.DAY)
    with pytest.raises(UsageError, match="empty"):
        resolve_partitions(ask(partitions=[]), Grain.DAY)


@pytest.mark.parametrize(
    "more,said",
    [
        ({"kind": "restat"}, "did you mean restate"),
        ({"order": "oldset"}, "did you mean oldest"),
        ({"reason": "  "}, "--reason"),
        ({"canary": -1}, "--canary"),
        ({"overrides": (Override("recnt", "x"),)}, "did you mean recent"),
    ],
)
def test_what_a_request_cannot_say_is_refused_with_the_nearest_word(more: dict[str, object], said: str):
    """Unknown kinds, orders and rules are usage errors."""
    with pytest.raises(UsageError, match=said):
        ask(**more)


def test_every_kind_can_be_asked_for():
    """Twelve names; two of them need what they are about."""
    needed = {"restore": {"restore": "7"}, "repair_copies": {"copies": ()}}
    found = [ask(kind=kind, **needed.get(kind, {})).kind for kind in KINDS]
    assert (found, len(found)) == (list(KINDS), 12)


@pytest.mark.parametrize(
    "more,said",
    [
        ({"kind": "attest", "canary": 1}, "publishes nothing that a canary could protect"),
        ({"kind": "reconcile", "canary": "2026-01-03"}, "publishes nothing that a canary could protect"),
        ({"kind": "reconcile", "prove_determinism": 2}, "computes nothing"),
        ({"kind": "restore", "restore": "7", "prove_determinism": 2}, "computes nothing"),
        ({"kind": "repair_copies", "copies": (), "prove_determinism": 2}, "computes nothing"),
        ({"kind": "repair_copies"}, "without --copies was refused"),
        ({"kind": "restate", "copies": ()}, "with --copies was refused"),
    ],
)
def test_options_that_a_kind_has_no_use_for_are_refused(more: dict[str, object], said: str):
    """An option that would silently do nothing is a mistake."""
    with pytest.raises(UsageError, match=said):
        ask(**more)
