"""The contract of :class:`errata.ports.compute.StagingTable`."""

from __future__ import annotations

import pytest

from errata.errors import EngineError, RunExpired
from errata.model.refs import GUARD, run_branch
from errata.testing.contracts.subject import (
    DAYS,
    FIRST,
    HISTORY,
    NOT_A_SNAPSHOT,
    RUN,
    SECOND,
    Sale,
    Subject,
    pin_target,
    read_head,
)

STAGED: tuple[Sale, ...] = ((FIRST, "a", "10.00"), (SECOND, "a", "40.00"))
BRANCH = f"errata_{RUN}_c1_abcd"


class StagingContract:
    """What attempts append is found again by their name, and a candidate is main with the scope replaced."""

    def test_preparing_a_run_can_be_repeated(self, subject: Subject) -> None:
        """The guard and the run branch are there, and hold nothing."""
        pin = pin_target(subject)
        guard = subject.staging.prepare(pin, RUN, 7)
        refs = subject.pins.refs(subject.table)
        assert (refs[GUARD], subject.read(refs[run_branch(RUN)])) == (guard, [])
        assert subject.staging.prepare(pin, RUN, 7) == guard
        assert subject.pins.refs(subject.table) == refs
        assert read_head(subject) == sorted(HISTORY)

    def test_an_attempt_is_found_by_its_name_with_exactly_its_files(self, subject: Subject) -> None:
        """Rows, files and partitions are those it appended; an attempt that wrote nothing is not found."""
        pin = pin_target(subject)
        subject.staging.prepare(pin, RUN, 7)
        subject.stage(RUN, "first", STAGED)
        subject.stage(RUN, "second", [(FIRST, "z", "1.00")])
        found = subject.staging.find_attempt(pin, "first")
        assert found is not None
        assert (found.rows, sorted(str(file.partition) for file in found.files)) == (2, [FIRST, SECOND])
        assert subject.staging.staged(pin, found.snapshot_id) == found
        assert subject.staging.find_attempt(pin, "third") is None
        assert read_head(subject) == sorted(HISTORY)

    def test_an_attempt_that_is_sent_twice_counts_once(self, subject: Subject) -> None:
        """The second append finds the first."""
        pin = pin_target(subject)
        subject.staging.prepare(pin, RUN, 7)
        for _ in range(2):
            subject.stage(RUN, "first", STAGED)
        found = subject.staging.find_attempt(pin, "first")
        assert found is not None
        assert found.rows == len(STAGED)
        assert subject.read(subject.pins.refs(subject.table)[run_branch(RUN)]) == sorted(STAGED)

    def test_an_append_to_a_dropped_branch_is_refused(self, subject: Subject) -> None:
        """The branch is not made again from main."""
        subject.staging.prepare(pin_target(subject), RUN, 7)
        assert subject.staging.drop_refs(subject.table, [run_branch(RUN), "nothing"]) == (run_branch(RUN),)
        with pytest.raises(RunExpired, match="was dropped"):
            subject.stage(RUN, "first", STAGED)
        assert run_branch(RUN) not in subject.pins.refs(subject.table)

    def test_staged_output_that_has_expired_is_not_guessed(self, subject: Subject) -> None:
        """The run has expired."""
        with pytest.raises(RunExpired, match="is gone"):
            subject.staging.staged(pin_target(subject), NOT_A_SNAPSHOT)

    def test_a_candidate_is_main_with_the_scope_replaced(self, subject: Subject) -> None:
        """Made again, it is the same one; main is not touched, and its head is the candidate's base."""
        pin = pin_target(subject)
        subject.staging.prepare(pin, RUN, 7)
        subject.stage(RUN, "first", STAGED[:1])
        staged = subject.staging.find_attempt(pin, "first")
        assert staged is not None
        paths = [file.path for file in staged.files]
        made = subject.staging.make_candidate(pin, RUN, BRANCH, [FIRST], paths, 7)
        assert made.base_snapshot_id == subject.pins.refs(subject.table)["main"]
        assert subject.read(made.snapshot_id) == sorted([*STAGED[:1], *(one for one in HISTORY if one[0] == SECOND)])
        assert subject.staging.make_candidate(pin, RUN, BRANCH, [FIRST], paths, 7) == made
        assert subject.staging.find_candidate(pin, BRANCH) == made
        assert subject.staging.find_candidate(pin, "errata_other") is None
        assert read_head(subject) == sorted(HISTORY)

    def test_a_candidate_of_files_that_were_not_staged_is_refused(self, subject: Subject) -> None:
        """No branch is left behind."""
        pin = pin_target(subject)
        subject.staging.prepare(pin, RUN, 7)
        with pytest.raises(EngineError):
            subject.staging.make_candidate(pin, RUN, BRANCH, DAYS, ["gone"], 7)
        assert BRANCH not in subject.pins.refs(subject.table)
