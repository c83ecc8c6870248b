"""Evidence of a member of a campaign: its plan is derived again, offline, from the campaign that was approved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from errata.canonical import canonical_bytes, sha256
from errata.evidence import verifier
from errata.evidence.bundle import build_bundle
from errata.evidence.keys import generate_key_pair, load_signing_key
from errata.evidence.verifier import INDEX, verify
from errata.model.campaign import derivation
from support.graph_world import GraphWorld
from unit.evidence.forging import predicate_of, unpacked

Spoil = Callable[[dict[str, Any]], None]


class Office:
    """A campaign that was run to its end, and the keys of the project."""

    def __init__(self, root: Path) -> None:
        self.world = GraphWorld.make(root)
        public = generate_key_pair(root / "errata.key")
        self.world.write("errata.yaml", "evidence: {key: errata.key}\n" + (root / "errata.yaml").read_text())
        self.public, self.key = public.pem, load_signing_key("errata.key", root)
        self.world.change("2026-02-01T23:00", 1000)
        client = self.world.client
        plan = client.plan_campaign("ops.hourly", partitions="2026-02-01T23", reason="late", as_="ana")
        client.approve_campaign(plan.campaign_id, digest=plan.campaign_digest, as_="bo")
        while (view := client.run_campaign(plan.campaign_id, as_="ana")).state != "done":
            for one in view.members:
                if one.state == "validated":
                    client.publish(one.run_id, as_="bo")
        self.runs = {one.product: one.run_id for one in view.members}
        self.campaign_id = plan.campaign_id

    def export(self, product: str) -> bytes:
        """The bundle of a member."""
        return self.world.client.evidence(self.runs[product], with_diff=False, as_="bo")[1]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """One campaign for all tests; nothing changes it."""
    made = Office(tmp_path_factory.mktemp("office"))
    yield made
    made.world.client.close()


@pytest.mark.parametrize("product", ["ops.hourly", "ops.daily", "ops.rolling"])
def test_evidence_of_a_member_verifies_with_the_approvals_of_its_campaign(office: Office, product: str) -> None:
    """The auditor sees the campaign, who approved its digest, and that the plan follows from it."""
    bundle = office.export(product)
    told = verify(bundle, [office.public])
    assert told.problems == []
    assert dict(told.facts)["campaign"] == f"{office.campaign_id}, 4 members"
    decisions = json.loads(unpacked(bundle)["records/decisions.json"])
    campaign = json.loads(unpacked(bundle)["records/campaign.json"])
    assert {one["digest"] for one in decisions["approvals"]} == {campaign["campaign_digest"]}


def _spoil_part(bundle: bytes, office: Office, which: str, change: Spoil) -> bytes:
    """Signed again by the holder of the key, with another part in the place of what the record names."""
    members = unpacked(bundle)
    del members[INDEX]
    record = json.loads(members["records/campaign.json"])
    data = json.loads(members.pop(f"parts/{record[which]}.json"))
    change(data)
    content = canonical_bytes(data)
    record[which] = sha256(content)
    members |= {f"parts/{record[which]}.json": content, "records/campaign.json": canonical_bytes(record)}
    return build_bundle(members, predicate_of(bundle), office.key)


def _other_rows(found: dict[str, Any]) -> None:
    found["inputs"]["days"]["rows"] += 1


def _other_files(found: dict[str, Any]) -> None:
    found["reads"]["days"]["files"]["2026-02-01"][0][1] += "x"


def _other_fingerprint(found: dict[str, Any]) -> None:
    found["reads"]["days"]["fingerprints"]["2026-01-31"] = "0" * 64


def _other_checks(campaign: dict[str, Any]) -> None:
    campaign["members"][3]["manifest"]["checks"] = []
    campaign["members"][3]["manifest"]["tolerance"] = {"amount": "5"}


@pytest.mark.parametrize(
    "which, change, said",
    [
        ("derived", _other_rows, "does not follow from the campaign that was approved"),
        ("derived", _other_files, "was written after ops.daily was published"),
        ("derived", _other_fingerprint, "input days changed in 2026-01-31"),
        ("campaign_digest", _other_checks, "has another campaign than the manifest"),
    ],
)
def test_a_member_that_does_not_follow_from_its_campaign_is_noticed(
    office: Office, which: str, change: Spoil, said: str
) -> None:
    """Whoever holds the key can sign anything; what was approved still has its own digest."""
    told = verify(_spoil_part(office.export("ops.rolling"), office, which, change), [office.public])
    assert any(said in one.problem for one in told.problems), told.problems


def test_a_bundle_without_the_campaign_of_its_member_is_refused(office: Office) -> None:
    """The digest in the manifest has to be looked up."""
    members = unpacked(office.export("ops.daily"))
    bundle = office.export("ops.daily")
    for name in (INDEX, "records/campaign.json"):
        del members[name]
    told = verify(build_bundle(members, predicate_of(bundle), office.key), [office.public])
    assert any("which is not in the bundle" in one.problem for one in told.problems)


def test_the_verifier_and_the_ledger_derive_the_same(office: Office) -> None:
    """The verifier needs no Errata, so it has a copy of the rule; the two may not differ."""
    ledger = office.world.workspace.ledger
    campaign = json.loads(ledger.campaigns.content(office.campaign_id))
    for product, member in ledger.members.list(office.campaign_id).items():
        found = json.loads(ledger.parts.get(member.derived))
        assert _agree(campaign, product, found, member.campaign_digest) == member.digest
    assert (verifier.TARGET_FIELDS, verifier.INPUT_FIELDS) == (derivation.TARGET_FIELDS, derivation.INPUT_FIELDS)


def _agree(campaign: Mapping[str, Any], product: str, found: Mapping[str, Any], digest: str) -> str:
    mine = derivation.derive_manifest(campaign, digest, product, found)
    assert mine == verifier.derive_manifest(campaign, digest, product, found)
    return sha256(canonical_bytes(mine))
