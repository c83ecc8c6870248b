"""A ledger with a run in every state: it names nobody but in one table, and evidence holds when they are erased."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing

from errata.evidence.verifier import verify
from errata.ledger.privacy.pseudonyms import ERASED
from errata.ledger.schema import definition as schema
from errata.model.run import ACTIVE, RunState
from unit.evidence.house import PEOPLE, House
from unit.ledger.shell import Shell

NewHouse = Callable[..., House]
NAMES = re.compile(rf"(?<![\w-])({'|'.join(f'{name}(-os)?' for name in PEOPLE)})(?![\w-])")


def test_no_table_but_one_names_a_person(house: House, cases: dict[str, str]):
    """Whatever became of the runs: manifests, decisions, releases, verdicts, publications and audit hold pseudonyms."""
    with closing(Shell(house.url)) as shell:
        dump = {
            table: shell.execute(f"SELECT * FROM {table.name}").fetchall() for table in schema.metadata.sorted_tables
        }
    for table, rows in dump.items():
        for value in (value for row in rows for value in row):
            found = NAMES.search(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))
            assert found is None or table is schema.subject, (table.name, found)


def test_evidence_of_erased_people_verifies_and_names_nobody(new_house: NewHouse):
    """A bundle made after the erasure is as good as one made before; only who it was is missing."""
    house = new_house()
    accepted = house.accepted()
    house.publish(accepted)
    before = house.export(accepted)
    for run in house.ledger.runs.list(states=ACTIVE):
        house.ledger.runs.move(run.run_id, RunState.CANCELLED, actor=house.actor("dana"))
    for name in ("bo", "bo-os", "ana", "ana-os"):
        house.ledger.people.erase(name, "asked for it", house.actor("dana"))
    assert house.ledger.audit.verify().ok
    assert verify(before, [house.public]).problems == []
    after = verify(house.exported(accepted)[1], [house.public])
    assert after.problems == []
    assert ERASED not in str(after.run)
    (warning,) = house.ledger.approvals.accepted_warnings(accepted)
    assert warning.why == ERASED
