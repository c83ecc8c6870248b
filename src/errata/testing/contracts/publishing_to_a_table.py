"""The contract of :class:`errata.ports.publish.PublishTable` and of its versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from errata.errors import EngineError, RunExpired
from errata.model.refs import GUARD, pre_tag, pub_tag, undo_branch
from errata.ports.publish import Outcome
from errata.testing.contracts.subject import (
    DAYS,
    FIRST,
    HISTORY,
    NOT_A_SNAPSHOT,
    SECOND,
    THIRD,
    Sale,
    Subject,
    pin_target,
    read_head,
    stage_candidate,
)

RIGHT: tuple[Sale, ...] = ((FIRST, "a", "10.00"), (FIRST, "c", "30.00"))
KEPT = [sale for sale in HISTORY if sale[0] != FIRST]


class PublishTableContract:
    """One compare-and-swap on one version; a fence and an undo set that hold."""

    def test_a_commit_replaces_the_files_of_its_partitions_and_no_other(self, subject: Subject) -> None:
        """Main reads as announced, the tags are on main before and after, and the outcome can be looked up."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        before = subject.pins.refs(subject.table)["main"]
        made = subject.publishing.version(pin).commit(order)
        refs = subject.pins.refs(subject.table)
        assert (refs["main"], read_head(subject)) == (made, sorted([*RIGHT, *KEPT]))
        assert (refs[pre_tag(order.publication_id)], refs[pub_tag(order.publication_id)]) == (before, made)
        found = subject.publishing.find_outcome(pin, order.publication_id)
        assert (found.outcome, found.snapshot_id) == (Outcome.LANDED, made)
        assert subject.read(before) == sorted(HISTORY)

    def test_a_commit_on_a_version_that_others_have_overtaken_does_not_land(self, subject: Subject) -> None:
        """Also when the live write was to another partition: the next try has to look first."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        version = subject.publishing.version(pin)
        subject.append((THIRD, "live", "1.00"))
        _refused(lambda: version.commit(order))
        assert read_head(subject) == sorted([*HISTORY, (THIRD, "live", "1.00")])
        assert subject.publishing.find_outcome(pin, order.publication_id).outcome is Outcome.ABSENT
        subject.publishing.version(pin).commit(order)
        assert read_head(subject) == sorted([*RIGHT, *KEPT, (THIRD, "live", "1.00")])

    def test_a_publication_lands_once(self, subject: Subject) -> None:
        """A second try finds its tag taken, on the version it began with and on the newest."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        first, second = subject.publishing.version(pin), subject.publishing.version(pin)
        made = first.commit(order)
        _refused(lambda: second.commit(order))
        _refused(lambda: subject.publishing.version(pin).commit(replace(order, remove=(), partitions=DAYS)))
        assert (subject.pins.refs(subject.table)["main"], read_head(subject)) == (made, sorted([*RIGHT, *KEPT]))

    def test_a_fence_keeps_a_late_commit_out(self, subject: Subject) -> None:
        """It can be put up again and again, and does not undo a publication that has landed."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        late = subject.publishing.version(pin)
        for _ in range(2):
            subject.publishing.fence(pin, order.publication_id)
        assert subject.publishing.find_outcome(pin, order.publication_id).outcome is Outcome.FENCED
        _refused(lambda: late.commit(order))
        _refused(lambda: subject.publishing.version(pin).commit(order))
        assert read_head(subject) == sorted(HISTORY)
        other = f"{order.run_id}-p2-fedcba"
        again = replace(order, publication_id=other, properties={**order.properties, "errata.publication": other})
        made = subject.publishing.version(pin).commit(again)
        subject.publishing.fence(pin, other)
        found = subject.publishing.find_outcome(pin, other)
        assert (found.outcome, found.snapshot_id) == (Outcome.LANDED, made)

    def test_a_publication_is_found_without_its_tag(self, subject: Subject) -> None:
        """A tool may drop the tag; the snapshot carries the publication's id."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        made = subject.publishing.version(pin).commit(order)
        subject.pins.remove(subject.table, pub_tag(order.publication_id))
        found = subject.publishing.find_outcome(pin, order.publication_id)
        assert (found.outcome, found.snapshot_id) == (Outcome.LANDED, made)

    def test_a_commit_that_relies_on_a_ref_fails_without_it(self, subject: Subject) -> None:
        """Whether the ref was gone when the version was read, or was dropped right before the swap."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        version, (branch,) = subject.publishing.version(pin), order.keep_refs
        subject.pins.drop(subject.table, [branch])
        _refused(lambda: version.commit(order))
        with pytest.raises(RunExpired, match=branch):
            subject.publishing.version(pin).commit(order)
        assert read_head(subject) == sorted(HISTORY)

    def test_a_commit_of_files_that_are_not_all_there_is_refused(self, subject: Subject) -> None:
        """Neither a file to remove nor a file to add may be missing."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        for wrong in (replace(order, remove=("gone",)), replace(order, add=(*order.add, "gone"))):
            with pytest.raises(EngineError):
                subject.publishing.version(pin).commit(wrong)
        assert read_head(subject) == sorted(HISTORY)

    def test_an_undo_branch_holds_exactly_the_files_it_was_given(self, subject: Subject) -> None:
        """A second one takes the place of the first; a file that the snapshot does not list is refused."""
        pin = pin_target(subject)
        head = subject.pins.refs(subject.table)["main"]
        files = {file.partition: file.path for file in subject.publishing.version(pin).live([FIRST, SECOND])}
        for names in ([FIRST, SECOND], [FIRST]):
            made = subject.publishing.write_undo(pin, "p1", head, names, [files[name] for name in names], 30)
            assert subject.pins.refs(subject.table)[undo_branch("p1")] == made
            assert subject.read(made) == sorted(sale for sale in HISTORY if sale[0] in names)
        with pytest.raises(EngineError):
            subject.publishing.write_undo(pin, "p1", head, [FIRST], ["gone"], 30)
        assert read_head(subject) == sorted(HISTORY)

    def test_what_was_taken_out_can_be_put_back(self, subject: Subject) -> None:
        """After an expiry, a commit that adds the files of the undo branch brings back exactly the old rows."""
        pin = pin_target(subject)
        order = stage_candidate(subject, pin, RIGHT, [FIRST])
        head = subject.pins.refs(subject.table)["main"]
        undo = subject.publishing.write_undo(pin, order.publication_id, head, [FIRST], order.remove, 30)
        subject.publishing.version(pin).commit(order)
        subject.expire()
        back, branch = f"{order.run_id}-r2-abcdef", undo_branch(order.publication_id)
        subject.publishing.version(pin).commit(
            replace(
                order, publication_id=back, remove=order.add, add=order.remove, add_from=(undo,),
                keep_refs={branch: 30}, properties={"errata.publication": back},
            )
        )  # fmt: skip
        assert read_head(subject) == sorted(HISTORY)

    def test_the_guard_is_made_once_and_holds_nothing(self, subject: Subject) -> None:
        """A dropped guard is made again."""
        pin = pin_target(subject)
        guard, made = subject.publishing.ensure_guard(pin)
        assert (made, subject.publishing.ensure_guard(pin)) == (True, (guard, False))
        assert (subject.pins.refs(subject.table)[GUARD], subject.read(guard)) == (guard, [])
        subject.pins.drop(subject.table, [GUARD])
        assert subject.publishing.ensure_guard(pin)[1]
        assert read_head(subject) == sorted(HISTORY)

    def test_the_files_of_a_partition_carry_their_delete_files(self, subject: Subject) -> None:
        """A delete that came after the base is named, with the partition it hits."""
        pin = pin_target(subject)
        subject.append((FIRST, "x", "1.00"), (FIRST, "y", "1.00"))
        base = subject.pins.refs(subject.table)["main"]
        subject.delete(FIRST, "x")
        version = subject.publishing.version(pin)
        carrying = [file for file in version.live([FIRST]) if file.deletes]
        assert carrying
        assert not any(file.deletes for file in version.live([SECOND]))
        (delete,) = version.new_deletes(base, [FIRST])
        assert FIRST in (delete.partition, *delete.may_hit)
        assert version.new_deletes(version.snapshot_id, [FIRST]) == ()
        assert read_head(subject) == sorted([*HISTORY, (FIRST, "y", "1.00")])

    def test_a_rewrite_writes_the_rows_that_readers_see(self, subject: Subject) -> None:
        """Deleted rows stay deleted; main is not touched."""
        pin = pin_target(subject)
        subject.append((FIRST, "x", "1.00"), (FIRST, "y", "1.00"))
        subject.delete(FIRST, "x")
        head = subject.pins.refs(subject.table)["main"]
        made = subject.publishing.rewrite(pin, "errata_p1_rows1", head, [FIRST])
        right = sorted([*(sale for sale in HISTORY if sale[0] == FIRST), (FIRST, "y", "1.00")])
        assert subject.read(made) == right
        assert not any(file.deletes for file in subject.publishing.files_of(pin, made, DAYS))
        assert subject.pins.refs(subject.table)["main"] == head

    def test_history_names_each_commit_since_the_base_and_what_it_touched(self, subject: Subject) -> None:
        """Newest first; it says when an expiry has cut it off."""
        pin = pin_target(subject)
        base = subject.pins.refs(subject.table)["main"]
        subject.append((SECOND, "live", "1.00"))
        subject.append((THIRD, "live", "1.00"))
        found = subject.publishing.version(pin).history(base, [FIRST, SECOND])
        assert found.complete
        assert [{name: touch.added_rows for name, touch in one.touched.items()} for one in found.commits] == [
            {},
            {SECOND: 1},
        ]
        assert [one.operation for one in found.commits] == ["append", "append"]
        subject.expire()
        assert not subject.publishing.version(pin).history(base, [FIRST]).complete

    def test_a_snapshot_that_lost_its_parent_is_not_taken_for_the_first(self, subject: Subject) -> None:
        """An expiry may clear the parent of the oldest snapshot it keeps; the commits before it are missing still."""
        pin = pin_target(subject)
        base = subject.pins.refs(subject.table)["main"]
        assert subject.publishing.version(pin).history(None, [FIRST]).complete
        subject.append((SECOND, "live", "1.00"))
        subject.append((THIRD, "live", "1.00"))
        subject.expire_and_clear_parents()
        version = subject.publishing.version(pin)
        assert not version.history(base, [FIRST]).complete
        assert not version.history(None, [FIRST]).complete

    def test_files_of_a_snapshot_that_has_expired_are_not_guessed(self, subject: Subject) -> None:
        """The run has expired; it does not get the files of another snapshot."""
        pin = pin_target(subject)
        with pytest.raises(RunExpired, match=NOT_A_SNAPSHOT):
            subject.publishing.files_of(pin, NOT_A_SNAPSHOT, DAYS)


def _refused(act: Callable[[], object]) -> None:
    """Adapters raise errors of their own for a swap that failed; the table decides what became of it."""
    with pytest.raises(Exception) as found:  # noqa: PT011 - as the docstring says
        act()
    assert not isinstance(found.value, AssertionError)
