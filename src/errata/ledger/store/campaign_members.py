"""Runs of a campaign: sealed and approved in one transaction, checked again when they are published or rolled back.

A member is approved by its campaign, so what it runs must follow from the campaign. The transaction that writes the
approval derives the manifest itself; the caller only says what it found in the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.canonical import canonical_bytes, from_plain, sha256
from errata.errors import ApprovalRefused, InputWithdrawn, ScopeLocked
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.ledger.records import CampaignRecord, MemberRecord, RunRecord
from errata.ledger.schema.definition import fact as fact_table
from errata.ledger.schema.definition import manifest as manifest_table
from errata.ledger.schema.definition import member_approval
from errata.ledger.store.base import Refusal, Store, build_record, find_run, move_run, to_json_text
from errata.ledger.store.campaigns import find_campaign, load_approvals, load_campaign_bytes, require_open
from errata.ledger.store.partition_history import find_current
from errata.ledger.store.parts import load_part, save_parts
from errata.ledger.store.publication_rows import find_publication, load_publications, select_open_publications
from errata.ledger.store.runs import RunScope, insert_run
from errata.model.approval import ApprovalRecord, QuorumStatus
from errata.model.audit import Actor
from errata.model.campaign.derivation import Drift, Json, derive_manifest, find_drift, find_member
from errata.model.consumer.outbox import Owed
from errata.model.manifest import Manifest
from errata.model.run import RunState

MemberCheck = Callable[[tuple[ApprovalRecord, ...], str], QuorumStatus]
"""Quorum status of a member, from the approvals of its campaign at this instant of the database's clock."""

WITHDRAWN = "withdrawn."
"""Name of the run note, up to the rollback, that voids the releases given before it."""
_OUT = frozenset({RunState.PUBLISHED, RunState.SUPERSEDED, RunState.ROLLED_BACK})


class CampaignMembers(Store):
    """Runs that were approved with a campaign."""

    def seal(
        self,
        campaign_id: str,
        product: str,
        run_id: str,
        found: Mapping[str, Any],
        *,
        digest: str,
        judge: MemberCheck,
        parts: Mapping[str, bytes],
        actor: Actor,
        owes: Sequence[Owed] = (),
    ) -> tuple[RunRecord, bool]:
        """Seal and approve the run of a member, as its campaign and what was found say; True if it was before.

        Refused unless the manifest that is derived here has this ``digest``, nothing drifted, the output of its parents
        is accepted, and its own approval rule is met by the approvals of the campaign.
        """
        content = canonical_bytes(found)

        def work(tx: Tx) -> tuple[RunRecord, bool]:
            known = _find_by_product(tx.conn, campaign_id, product)
            if known is not None:
                return find_run(tx.conn, known.run_id), True
            campaign = find_campaign(tx.conn, campaign_id, tx.now_ms)
            require_open(campaign, f"start of {product}", "member.sealed")
            sealed = json.loads(load_campaign_bytes(tx.conn, campaign))
            derived = canonical_bytes(derive_manifest(sealed, campaign.digest, product, found))
            _require_same_digest(campaign, product, sha256(derived), digest)
            _require_no_drift(tx.conn, campaign, sealed, product, found)
            _require_parents(tx.conn, campaign, sealed, product, found)
            status = judge(load_approvals(tx.conn, campaign_id), tx.at)
            if not status.is_met:
                raise _refuse(campaign, product, f"it is not approved: {'; '.join(status.missing)}")
            save_parts(tx, [content, *parts.values()])
            _insert_run(tx, run_id, derived, campaign, actor)
            row = {
                "run_id": run_id, "campaign_id": campaign_id, "product": product, "digest": digest,
                "campaign_digest": campaign.digest, "derived": sha256(content), "at": tx.at,
            }  # fmt: skip
            tx.conn.execute(member_approval.insert(), row | {"audit_seq": tx.head_seq + 1})
            body = {"campaign": campaign_id, "campaign_digest": campaign.digest, "member": product}
            body |= {"member_digest": digest, "derived": row["derived"]}
            run = move_run(tx, find_run(tx.conn, run_id), RunState.APPROVED, actor, "run.approved", body)
            write_owed(tx, run, run_id, owes, actor)
            return run, False

        return self._write(actor, work)

    def list(self, campaign_id: str) -> dict[str, MemberRecord]:
        """Members that were sealed, by product."""
        query = select(member_approval).where(member_approval.c.campaign_id == campaign_id)
        return self._read(lambda conn: {row.product: build_record(MemberRecord, row) for row in conn.execute(query)})

    def of_run(self, run_id: str) -> MemberRecord | None:
        """The member that a run is; None for a run that is not part of a campaign."""
        return self._read(lambda conn: find_member_of(conn, run_id))


def find_member_of(conn: Connection, run_id: str) -> MemberRecord | None:
    """The member that a run is; None for a run that is not part of a campaign."""
    row = conn.execute(select(member_approval).where(member_approval.c.run_id == run_id)).first()
    return None if row is None else build_record(MemberRecord, row)


def require_member(conn: Connection, run: RunRecord) -> None:
    """Refuse to publish a member whose manifest no longer follows from its campaign, or whose input was withdrawn."""
    member = find_member_of(conn, run.run_id)
    if member is None:
        if _names_campaign(conn, run):
            error = _unapproved_error(run, "its manifest names a campaign that did not approve it")
            raise Refusal(error, run_id=run.run_id, action="publish.intended")
        return
    campaign = find_campaign(conn, member.campaign_id)
    sealed, found = json.loads(load_campaign_bytes(conn, campaign)), json.loads(load_part(conn, member.derived))
    derived = sha256(canonical_bytes(derive_manifest(sealed, campaign.digest, member.product, found)))
    if derived != run.manifest_digest:
        error = _unapproved_error(run, f"its manifest {run.manifest_digest} does not follow from its campaign")
        raise Refusal(error, run_id=run.run_id, action="publish.intended", body={"derived": derived})
    withdrawn = list(_iterate_withdrawn(conn, sealed, member.product, found))
    if withdrawn:
        table, names = withdrawn[0]
        gone = InputWithdrawn(
            f"publish of {run.run_id} was refused; it was computed from {', '.join(names[:5])} of {table}, which was "
            "rolled back or published again since",
            state="the live table was not touched",
            hint=f"errata status {member.campaign_id}",
            run_id=run.run_id,
            partitions=list(names),
        )
        raise Refusal(gone, run_id=run.run_id, action="publish.intended", body={"table": table, "names": names[:50]})


def withdraw_from_descendants(tx: Tx, run: RunRecord, pub_id: str, actor: Actor) -> None:
    """Before a rollback: refuse while a member that reads this run is being published, and void their releases."""
    member = find_member_of(tx.conn, run.run_id)
    if member is None:
        return
    campaign = find_campaign(tx.conn, member.campaign_id)
    sealed = json.loads(load_campaign_bytes(tx.conn, campaign))
    for product in _list_descendants(sealed, member.product):
        below = _find_by_product(tx.conn, member.campaign_id, product)
        if below is None:
            continue
        open_ones = load_publications(tx.conn, select_open_publications(None, below.run_id))
        if open_ones:
            error = ScopeLocked(
                f"rollback of {run.run_id} was refused; {open_ones[0].kind} {open_ones[0].pub_id} of {product}, which "
                "was computed from it, is in progress",
                state="the live table was not touched",
                hint=f"errata status {below.run_id}; try again when it is settled",
                holder=open_ones[0].pub_id,
                holders=[open_ones[0].pub_id],
            )
            raise Refusal(
                error, run_id=run.run_id, action="rollback.intended", body={"holders": error.fields["holders"]}
            )
        if find_run(tx.conn, below.run_id).state in _OUT:
            continue
        value = {"rollback": pub_id, "parent": run.run_id, "seq": tx.head_seq + 1}
        seq = append_entry(tx, actor, f"fact.{WITHDRAWN}{pub_id}", below.run_id, value).seq
        row = {"run_id": below.run_id, "name": f"{WITHDRAWN}{pub_id}", "value": to_json_text(value)}
        tx.conn.execute(fact_table.insert(), row | {"at": tx.at, "audit_seq": seq})


def _list_descendants(sealed: Json, product: str) -> Iterator[str]:
    reached = {product}
    for one in sealed["members"]:
        if reached.intersection(one["after"]):
            reached.add(one["product"])
            yield one["product"]


def _find_by_product(conn: Connection, campaign_id: str, product: str) -> MemberRecord | None:
    where = (member_approval.c.campaign_id == campaign_id) & (member_approval.c.product == product)
    row: Row[Any] | None = conn.execute(select(member_approval).where(where)).first()
    return None if row is None else build_record(MemberRecord, row)


def _names_campaign(conn: Connection, run: RunRecord) -> bool:
    query = select(manifest_table.c.content).where(manifest_table.c.digest == run.manifest_digest)
    return json.loads(conn.execute(query).scalar_one()).get("campaign") is not None


def _require_same_digest(campaign: CampaignRecord, product: str, derived: str, digest: str) -> None:
    if derived != digest:
        raise _refuse(
            campaign, product, f"its manifest {digest} does not follow from the campaign, which gives {derived}"
        )


def _require_no_drift(conn: Connection, campaign: CampaignRecord, sealed: Json, product: str, found: Json) -> None:
    details = {
        one["detail"] for parent in found["publications"].values() for one in parent["partitions"].values()
    }  # fmt: skip
    intents = {digest: json.loads(load_part(conn, digest)) for digest in details}
    if drift := find_drift(sealed, product, found, intents):
        raise _refuse(campaign, product, describe_drift(drift))


def describe_drift(drift: Sequence[Drift]) -> str:
    """What drifted, in a sentence."""
    told = []
    for one in drift:
        names = f" {', '.join(one.partitions[:5])}{' …' if len(one.partitions) > 5 else ''}" if one.partitions else ""
        told.append(f"{one.what}, {one.table}{names}: {one.why}")
    return "; ".join(told)


def _require_parents(conn: Connection, campaign: CampaignRecord, sealed: Json, product: str, found: Json) -> None:
    """Refuse unless every parent is out, and its partitions that are read are the accepted ones of the named runs."""
    for parent in find_member(sealed, product)["after"]:
        above = _find_by_product(conn, campaign.campaign_id, parent)
        named = found["publications"].get(parent) or {}
        if above is None or find_run(conn, above.run_id).state is not RunState.PUBLISHED:
            raise _refuse(campaign, product, f"{parent}, which it reads, is not published")
        if named.get("run_id") != above.run_id:
            raise _refuse(
                campaign, product, f"it names {named.get('run_id')} as the run of {parent}, not {above.run_id}"
            )
        for name, one in named["partitions"].items():
            if find_publication(conn, one["publication"]).detail != one["detail"]:
                raise _refuse(campaign, product, f"{one['publication']} did not publish {name} as it says")
    for table, names in _iterate_withdrawn(conn, sealed, product, found):
        raise _refuse(campaign, product, f"{', '.join(names[:5])} of {table} is no longer what its run published")


def _iterate_withdrawn(conn: Connection, sealed: Json, product: str, found: Json) -> Iterator[tuple[str, list[str]]]:
    """Partitions that a member read from a run of the campaign, and that this publication no longer accounts for."""
    for read in find_member(sealed, product)["reads"]:
        named = found["publications"].get(read["from_run"])
        if not named:
            continue
        current = find_current(conn, read["table"], read["published"])
        gone = [
            name
            for name in read["published"]
            if name not in current
            or (current[name].run_id, current[name].origin_pub_id)
            != (named["run_id"], named["partitions"][name]["publication"])
        ]
        if gone:
            yield read["table"], gone


def _insert_run(tx: Tx, run_id: str, content: bytes, campaign: CampaignRecord, actor: Actor) -> None:
    """Add the run of a member; the person who planned the campaign asked for it."""
    manifest = from_plain(Manifest, json.loads(content))
    scope = RunScope(manifest.product, manifest.target.table, manifest.partitions, manifest.chunks)
    body = {"campaign": campaign.campaign_id, "person": campaign.planned_by, "verdicts": []}
    insert_run(tx, run_id, content, scope, campaign.planned_by, actor, body)


def _refuse(campaign: CampaignRecord, product: str, why: str) -> Refusal:
    error = ApprovalRefused(
        f"{product} of {campaign.campaign_id} was not started; {why}",
        state="nothing was changed",
        hint=f"errata status {campaign.campaign_id}",
    )
    return Refusal(error, run_id=campaign.campaign_id, action="member.sealed", body={"member": product})


def _unapproved_error(run: RunRecord, why: str) -> ApprovalRefused:
    return ApprovalRefused(
        f"publish of {run.run_id} was refused; {why}", state="the live table was not touched", run_id=run.run_id
    )
