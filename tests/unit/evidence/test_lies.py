"""Someone who holds the key and lies about a run is contradicted by the rest of the bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from errata.canonical import canonical_bytes, sha256
from errata.evidence.bundle import build_bundle
from errata.evidence.verifier import DECISIONS, DIFF, GATE, MUST, PLAN, PUBLICATIONS, RUN, WORK, Report, verify
from unit.evidence.forging import predicate_of, resealed, unpacked, with_lines
from unit.evidence.house import House

Change = Callable[[Any], Any]


def judged(house: House, bundle: bytes) -> Report:
    return verify(bundle, [house.public])


def put(place: str, value: Any) -> Change:
    """Set one field: ``approvals.0.person``."""

    def change(data: Any) -> None:
        *way, last = place.split(".")
        for step in way:
            data = data[int(step) if step.isdigit() else step]
        data[int(last) if last.isdigit() else last] = value

    return change


def drop(place: str) -> Change:
    def change(data: Any) -> None:
        *way, last = place.split(".")
        for step in way:
            data = data[int(step) if step.isdigit() else step]
        del data[int(last) if last.isdigit() else last]

    return change


LIES: dict[str, tuple[str, dict[str, Change], str, str]] = {
    # what is claimed: (bundle, changed records, member that is named, what is said)
    "another manifest": ("published", {"manifest": put("reason", "something else")}, "manifest.json", "was planned"),
    "another reason": ("published", {"run": put("reason", "x")}, RUN, "another reason"),
    "another requester": ("published", {"run": put("requested_by", "bo")}, RUN, "requested_by"),
    "a better state": ("rejected", {"run": put("state", "published")}, RUN, "audit ends with"),
    "nothing was set aside": ("published", {"plan": drop("verdicts.0")}, PLAN, "other verdicts"),
    "the requester approved": (
        "published", {"decisions": put("approvals.0.person", "ana")}, DECISIONS, "audit entry",
    ),
    "approved over another digest": (
        "published", {"decisions": put("approvals.0.digest", "f" * 64)}, DECISIONS, "not over this",
    ),
    "an approval that never was": (
        "planned",
        {"decisions": put("approvals", [{"person": "bo", "decision": "approved", "digest": "f" * 64, "note": "",
                                                 "at": "", "audit_seq": 999_999, "break_glass": ""}])},
        DECISIONS, "which is not this run's",
    ),
    "it only checked": (
        "published", {"manifest": put("kind", "attest")}, PUBLICATIONS, "changes nothing, but was published",
    ),
    "nobody had to approve": (
        "published", {"manifest": put("kind", "reconcile")}, "audit/entries.jsonl", "changes nothing",
    ),
    "no decline": ("declined", {"decisions": drop("approvals.0")}, DECISIONS, "lacks the decision"),
    "no approval": ("published", {"decisions": drop("approvals.0")}, DECISIONS, "0 of 1 approvals"),
    "no release": ("published", {"decisions": drop("releases.0")}, PUBLICATIONS, "was not given"),
    "another release": (
        "published", {"decisions": put("releases.0.subject", "{}")}, DECISIONS, "not the digest of",
    ),
    "no warning": ("accepted", {"decisions": put("warnings", [])}, GATE, "who did not accept it"),
    "another acceptance": (
        "accepted", {"decisions": put("warnings.0.findings", "f" * 64)}, DECISIONS, "other accepted",
    ),
    "a lost attempt was adopted": (
        "published", {"work": put("attempts.0.state", "adopted")}, WORK, "with 2 adopted",
    ),
    "other rows were adopted": ("published", {"work": put("attempts.1.rows", 9)}, WORK, "not what"),
    "no attempt was lost": ("published", {"work": drop("attempts.0")}, WORK, "has fences"),
    "another candidate": ("published", {"gate": put("candidates.0.digest", "f" * 64)}, GATE, "digest"),
    "another snapshot": (
        "published", {"gate": put("candidates.0.snapshot_id", "1")}, GATE, "the audit says 5501",
    ),
    "other numbers": ("published", {"c1": put("0.3", "1")}, "measurements/c1.json", "that were audited"),
    "the gate passed": ("rejected", {"gate": put("verdicts.0.passed", value=True)}, GATE, "open findings"),
    "nothing blocked": ("rejected", {"gate": put("verdicts.0.checks", [])}, GATE, "0 open findings"),
    "no verdict": ("published", {"gate": put("verdicts", [])}, PUBLICATIONS, "without a verdict"),
    "no threshold changed": ("accepted", {"gate": put("facts", {})}, GATE, "fact thresholds.1 is not"),
    "another summary": ("published", {"diff": put("summary", "f" * 64)}, DIFF, "another summary"),
    "no publication": ("published", {"publications": put("publications", [])}, PUBLICATIONS, "lacks"),
    "another snapshot was published": (
        "published", {"publications": put("publications.0.result_snapshot_id", "1")},
        PUBLICATIONS, "the audit another",
    ),
    "an abandoned publication landed": (
        "abandoned", {"publications": put("publications.0.state", "committed")},
        PUBLICATIONS, "the audit says otherwise",
    ),
    "someone else published": (
        "published", {"publications": put("publications.0.person", "dana")},
        PUBLICATIONS, "not what was intended",
    ),
    "no rollback": (
        "rolled_back_in_part", {"publications": drop("publications.1")}, PUBLICATIONS, "lacks",
    ),
    "it was not taken back": (
        "rolled_back_in_part", {"run": put("partitions.2026-01-01", "accepted")}, RUN,
        "publications make it rolled_back",
    ),
}  # fmt: skip


@pytest.mark.parametrize("claim", LIES)
def test_a_lie_is_contradicted(house: House, bundles: dict[str, bytes], claim: str):
    """Each record that is changed and signed again is named, with what contradicts it."""
    name, changes, member, said = LIES[claim]
    found = judged(house, resealed(bundles[name], house.key, **changes))
    assert any(one.member == member and said in one.problem for one in found.problems), found.problems


@pytest.mark.parametrize(
    "old, new",
    [
        (b'"state":"published"', b'"state":"published","state":"published"'),
        (b'"state":"published"', b'"state":NaN'),
        (b'"state":"published"', b'"state":\xff'),
        (b'"state":"published"', b'"state":' + b"[" * 100_000),
        (b'{"grain"', b'\xef\xbb\xbf{"grain"'),
    ],
    ids=["a key twice", "no number", "no text", "too deep", "a byte order mark"],
)
def test_records_have_one_reading(house: House, bundles: dict[str, bytes], old: bytes, new: bytes):
    """JSON that two parsers could read differently, or none could, is refused by member, also when it is signed."""
    members = unpacked(bundles["published"])
    del members["evidence.dsse.json"]
    assert old in members[RUN] or members[RUN].startswith(b"{")
    spoilt = members[RUN].replace(old, new, 1) if old in members[RUN] else new[:3] + members[RUN]
    found = judged(house, build_bundle(members | {RUN: spoilt}, predicate_of(bundles["published"]), house.key))
    assert [one.member for one in found.problems] == [RUN]


@pytest.mark.parametrize("content", [b"{}", b"[]", b"null", b'"x"', b"1", b'{"publications":[1]}', b""])
def test_records_of_any_other_shape_are_told_and_never_crash(house: House, bundles: dict[str, bytes], content: bytes):
    """Each record and the audit replaced by something else, and signed: a problem, not a traceback."""
    members = unpacked(bundles["published"])
    del members["evidence.dsse.json"]
    for name in MUST:
        found = judged(house, build_bundle(members | {name: content}, predicate_of(bundles["published"]), house.key))
        assert not found.ok, name


def test_files_that_the_candidate_never_had_are_found(house: House, bundles: dict[str, bytes]):
    """A publication whose list has another file is contradicted by the candidate, even with parts made anew."""
    members = unpacked(bundles["published"])
    publication = json.loads(members["records/publications.json"])["publications"][0]
    old = publication["details"][-1]
    detail = json.loads(members[f"parts/{old}.json"])
    detail["add"]["2026-01-01"].append(["data", "s3://lake/foreign.parquet", 1])
    content = canonical_bytes(detail)

    def forge(entries: list[Any]) -> None:
        for one in entries:
            if "content" in one:
                one["content"] = one["content"].replace(old, sha256(content))

    del members["evidence.dsse.json"]
    members[f"parts/{sha256(content)}.json"] = content
    members["records/publications.json"] = members["records/publications.json"].replace(
        old.encode(), sha256(content).encode()
    )
    made = with_lines(build_bundle(members, predicate_of(bundles["published"]), house.key), house.key, forge)
    said = [one.problem for one in judged(house, made).problems]
    assert any("added files that the candidate did not have: s3://lake/foreign.parquet" in one for one in said)
    assert any("the signed head is" in one for one in said)


# ---------------------------------------------------------------------------------------------------------- the audit


def own(entries: list[Any]) -> list[int]:
    return [n for n, one in enumerate(entries) if "content" in one]


def hide(entries: list[Any]) -> None:
    """Show an entry of this run as if it were another's: its link is right, its content is left out."""
    at = own(entries)[2]
    content = entries[at]["content"]
    run = sha256(json.loads(content)["run_id"].encode())
    entries[at] = {"seq": entries[at]["seq"], "run": run, "content_sha256": sha256(content.encode())}


def hide_well(entries: list[Any]) -> None:
    """The same, with another run's id in the link."""
    hide(entries)
    at = next(n for n, one in enumerate(entries) if "content_sha256" in one)
    entries[at]["run"] = sha256(b"bf-other")


def edit(entries: list[Any]) -> None:
    at = own(entries)[1]
    entries[at]["content"] = entries[at]["content"].replace("workspace-7", "workspace-8", 1)


def cut(entries: list[Any]) -> list[Any]:
    return entries[:-1]


def leave_out(entries: list[Any]) -> list[Any]:
    return entries[:3] + entries[4:]


def swap(entries: list[Any]) -> None:
    entries[2], entries[3] = entries[3], entries[2]


def begin_later(entries: list[Any]) -> list[Any]:
    return [entries[0] | {"first": entries[2]["seq"]}, *entries[2:]]


def put_a_link_in_place(entries: list[Any]) -> None:
    at = next(n for n, one in enumerate(entries) if "content_sha256" in one)
    entries[at]["content_sha256"] = "f" * 64


def only_the_hash(entries: list[Any]) -> list[Any]:
    """Claim that an entry is an old one, of which only the hash is shown."""
    return [*entries[:-1], {"seq": entries[-1]["seq"], "hash": "f" * 64}]


def twice(entries: list[Any]) -> list[Any]:
    return [*entries, entries[-1]]


@pytest.mark.parametrize(
    "change",
    [hide, hide_well, edit, cut, leave_out, swap, begin_later, put_a_link_in_place, only_the_hash, twice],
    ids=lambda change: change.__name__,
)
def test_other_audit_entries_do_not_lead_to_the_head(house: House, bundles: dict[str, bytes], change: Change):
    """Entries that are edited, hidden, left out, moved or made up are found, whoever signs the bundle."""
    found = judged(house, with_lines(bundles["part_published"], house.key, change))
    assert any(one.member == "audit/entries.jsonl" for one in found.problems), found.problems


def test_a_hidden_entry_of_the_run_is_called_that(house: House, bundles: dict[str, bytes]):
    """A link carries the hash of its run's id, so leaving out what an own entry says shows."""
    found = judged(house, with_lines(bundles["part_published"], house.key, hide))
    assert any("is of this run, but what it says is left out" in one.problem for one in found.problems)


def test_newer_entries_are_not_followed_by_older_ones(house: House, bundles: dict[str, bytes]):
    """A bare hash is what entries of older releases show; a liar cannot hide an entry behind that claim."""
    found = judged(house, with_lines(bundles["part_published"], house.key, only_the_hash))
    assert any("claims to be of an older release" in one.problem for one in found.problems)


def test_every_field_of_every_own_entry_counts(house: House, bundles: dict[str, bytes]):
    """No own entry can say anything else in any field."""
    entries = [json.loads(line) for line in unpacked(bundles["declined"])["audit/entries.jsonl"].splitlines()]
    for at in own(entries):
        for name in json.loads(entries[at]["content"]):

            def change(data: list[Any], at: int = at, name: str = name) -> None:
                content = json.loads(data[at]["content"])
                content[name] = f"{content[name]} " if isinstance(content[name], str) else {"person": "x"}
                data[at]["content"] = canonical_bytes(content).decode()

            assert not judged(house, with_lines(bundles["declined"], house.key, change)).ok, (at, name)


def test_a_head_that_was_kept_elsewhere_is_held_against_the_entries(house: House, bundles: dict[str, bytes]):
    """A kept head that meets these entries agrees; of another history it does not; outside of them it says nothing."""
    from errata.evidence.heads import sign_head
    from errata.model.audit import Head

    bundle = bundles["published"]
    entries = house.ledger.audit.entries()
    at = next(one for one in entries if one.action == "publish.committed")
    for digest, fits in ((at.hash, True), ("f" * 64, False)):
        head = sign_head(Head(house.ledger.ledger_id, "finsight", at.seq, digest, at.at), house.key)
        found = verify(bundle, [house.public], [head])
        first = json.loads(unpacked(bundle)["audit/entries.jsonl"].splitlines()[0])["first"]
        if at.seq < first:
            assert any("proves nothing" in one for one in found.warnings)
        else:
            assert found.ok is fits
    last = entries[-1]
    for digest, fits in ((last.hash, True), ("f" * 64, False)):
        head = sign_head(Head(house.ledger.ledger_id, "finsight", last.seq, digest, last.at), house.key)
        assert verify(bundle, [house.public], [head]).ok is fits
    foreign = sign_head(Head("another", "finsight", last.seq, last.hash, last.at), house.key)
    assert not verify(bundle, [house.public], [foreign]).ok
