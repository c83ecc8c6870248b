"""Which commits are gaps, and which runs answer for them."""

from __future__ import annotations

from errata.live_writers.foreign_commits import Answer, find_foreign_commits, find_gaps, is_maintenance
from errata.model.table import Commit, History, Touch

DAY, NEXT = "2026-01-01", "2026-01-02"


def _commit(name: str, operation: str = "append", touch: Touch = Touch(1), **summary: str) -> Commit:  # noqa: B008
    told = {key.replace("__", "."): value for key, value in summary.items()}
    return Commit(name, operation, 0, "job", {DAY: touch}, summary=told)


def _foreign(*commits: Commit, published: dict[str, str | None] | None = None) -> list[str]:
    found = find_foreign_commits(History(commits, complete=True), published or {}, ["daily"])
    return [one.snapshot_id for one in found]


def test_a_commit_that_only_claims_to_be_a_publication_is_foreign() -> None:
    """The ledger knows the snapshot of each publication, so a copied property proves nothing."""
    real, copied = _commit("7", errata__publication="p1"), _commit("8", errata__publication="p1")
    assert _foreign(copied, real, published={"p1": "7"}) == ["8"]
    assert _foreign(real) == ["7"]  # of another ledger
    assert _foreign(real, published={"p1": None}) == []  # landed, and not settled yet


def test_a_rewrite_that_adds_rows_is_no_maintenance() -> None:
    """Compaction keeps rows, or drops those that delete files had deleted before."""
    assert is_maintenance(_commit("7", "replace", Touch(5, 5)))
    assert is_maintenance(_commit("7", "replace", Touch(4, 5)))
    assert not is_maintenance(_commit("7", "replace", Touch(6, 5)))
    assert not is_maintenance(_commit("7", "overwrite", Touch(5, 5)))


def test_an_answer_holds_for_commits_up_to_its_snapshot() -> None:
    """Main from its head back is 9, 8, 7: an answer at 8 covers 8 and 7, one that main lost covers none."""
    commits, line = (_commit("9"), _commit("7")), ("9", "8", "7")
    at = {name: Answer(f"bf-{name}", name, frozenset({DAY})) for name in ("9", "8", "7", "gone")}
    for name, still_open in {"9": [], "8": ["9"], "7": ["9"], "gone": ["9", "7"]}.items():
        gaps = find_gaps(commits, line, (), [at[name]])
        assert [gap.commit.snapshot_id for gap in gaps if gap.open] == still_open, name


def test_a_commit_of_unknown_reach_needs_an_answer_for_every_partition() -> None:
    """Where nothing proves which partitions it touched, none is taken to be untouched."""
    wide = Commit("7", "delete", 0, "job", {}, touches_everything=True)
    (gap,) = find_gaps([wide], ("7",), (DAY, NEXT), [Answer("bf-1", "7", frozenset({DAY}))])
    assert (gap.partitions, gap.open, gap.is_whole) == ((DAY, NEXT), (NEXT,), True)
