"""Intents as values: what is stored is read back, byte for byte, also what earlier code stored."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from compat import old
from errata.canonical import canonical_bytes
from errata.ledger import Ledger
from errata.model.manifest import ExpectedFile, NewColumn
from errata.publishing.intent import CarriedRows, Intent

names = st.text("ab-0", max_size=4)
texts = st.lists(names, max_size=3).map(tuple)
files = st.builds(
    ExpectedFile, names, st.integers(0, 9), st.sampled_from(["data", "position_deletes", "equality_deletes"])
)
listed = st.lists(files, max_size=3).map(tuple)
sets = st.dictionaries(names, listed, max_size=3)
intents = st.builds(
    Intent,
    kind=st.sampled_from(["publish", "rollback"]),
    partitions=texts,
    base_snapshot_id=names,
    remove=sets,
    add=sets,
    add_from=texts,
    compacted=texts,
    with_deletes=texts,
    rewrite=st.dictionaries(names, texts, max_size=2),
    columns=st.lists(st.builds(NewColumn, names, names, st.integers(1, 9)), max_size=2).map(tuple),
    carried=st.none() | st.builds(CarriedRows, texts, listed, names),
    versions=st.none() | st.dictionaries(names, st.integers(1, 9), max_size=2),
    data_files=st.none() | st.integers(0, 9),
    found_on_table=st.booleans(),
)


@given(intents)
def test_an_intent_is_read_back_as_it_was_stored(intent: Intent):
    """Through JSON, whatever it holds."""
    assert Intent.from_dict(json.loads(canonical_bytes(intent.to_dict()))) == intent


def test_intents_that_earlier_code_stored_keep_their_bytes():
    """A value and back gives the JSON that is in the ledger and in bundles of evidence."""
    with old.unpacked() as project, Ledger.open(f"sqlite:///{project}/.errata/ledger.db", create=False) as ledger:
        stored = [
            ledger.publications.detail(publication.pub_id)
            for run in ledger.runs.list()
            for publication in ledger.publications.list(run.run_id)
        ]
    assert len(stored) >= 3
    assert [Intent.from_dict(one).to_dict() for one in stored] == stored
