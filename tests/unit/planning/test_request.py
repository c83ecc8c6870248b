from __future__ import annotations

import pytest

from errata.errors import UsageError
from errata.model.manifest import Override
from errata.model.partition import Grain
from errata.planning.request import KINDS, RESERVED, resolve_partitions
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


def test_every_kind_but_the_reserved_ones_can_be_planned():
    """Eleven names, two of which are kept for later."""
    found = [ask(kind=kind, restore="7" if kind == "restore" else None).kind for kind in KINDS]
    assert found == list(KINDS)
    assert (len(KINDS), RESERVED) == (9, ("attest", "reconcile"))


@pytest.mark.parametrize("kind", ["attest", "reconcile"])
@pytest.mark.parametrize(
    "scope,tried",
    [
        ({"start": "2026-01-03", "end": "2026-01-05"}, "2026-01-03"),
        ({"partitions": "2026-01-03,2026-01-05..2026-01-06"}, "2026-01-03,2026-01-05..2026-01-06"),
        ({"partitions": ["2026-01-04", "2026-01-05"]}, "2026-01-04"),
    ],
)
def test_a_kind_that_promises_to_publish_nothing_is_refused(kind: str, scope: dict[str, object], tried: str):
    """A run would compute the partitions and replace them in the table; the hint is what compares them today."""
    with pytest.raises(UsageError, match=f"kind {kind} was refused") as refused:
        ask(kind=kind, **{"start": None, "end": None, "partitions": None, **scope})
    assert refused.value.state == "nothing was planned"
    assert (refused.value.hint or "").endswith(f"errata try fin.daily_revenue {tried}")
