"""Campaigns: recorded once per manifest, decided over their digest, and the steps of them that are not runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.canonical import from_plain, parse_strict_json, sha256
from errata.errors import ApprovalRefused, ManifestTampered, NotFound, StateRefused, UsageError
from errata.ledger.audit.chain import append_entry, load_entries
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.ledger.records import CampaignRecord, StepRecord
from errata.ledger.schema.definition import campaign as campaign_table
from errata.ledger.schema.definition import campaign_approval, campaign_step, member_approval
from errata.ledger.schema.definition import manifest as manifest_table
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.base import Refusal, Store, build_record, find_run
from errata.ledger.store.parts import digest_content, save_parts
from errata.model.approval import ApprovalRecord
from errata.model.audit import Actor
from errata.model.campaign.campaign_manifest import Campaign
from errata.model.consumer.outbox import Owed
from errata.model.graph.read_rule import Shift

_DECISIONS = {"approved": "approve", "declined": "decline"}
UNDO_ACTIONS = ("campaign.undoing", "campaign.undone")
"""Audit entries between which members are rolled back one after the other."""


class Campaigns(Store):
    """Campaigns, their approvals and their steps of dbt; :mod:`errata.ledger.store.campaign_members` has the runs."""

    def record(
        self, campaign_id: str, content: bytes, *, parts: Mapping[str, bytes], actor: Actor, body: Mapping[str, Any]
    ) -> tuple[CampaignRecord, bool]:
        """Record a sealed campaign in one transaction; True with the campaign if it was recorded before."""
        digest, sealed = sha256(content), parse_strict_json(content)
        for name, part in parts.items():
            if sha256(part) != name:
                raise UsageError(f"the campaign was not recorded; part {name} has another digest")

        def work(tx: Tx) -> tuple[CampaignRecord, bool]:
            known = tx.conn.execute(select(campaign_table).where(campaign_table.c.digest == digest)).first()
            if known is not None:
                return _campaign_from_row(known, tx.now_ms), True
            save_parts(tx, parts.values())
            tx.conn.execute(manifest_table.insert(), {"digest": digest, "content": content, "at": tx.at})
            until = Shift.parse(sealed["valid_for"]).move(tx.now_ms // 1000, 1) * 1000
            planned = {**body, "product": sealed["product"], "manifest_digest": digest, "valid_until": until}
            seq = append_entry(tx, actor, "campaign.planned", campaign_id, planned).seq
            row = {
                "campaign_id": campaign_id, "digest": digest, "product": sealed["product"],
                "planned_by": actor.person, "reason": sealed["reason"], "planned_at": tx.at, "valid_until": until,
                "state": "open", "supersedes": sealed.get("supersedes"), "updated_at": tx.at, "audit_seq": seq,
            }  # fmt: skip
            tx.conn.execute(campaign_table.insert(), row)
            return find_campaign(tx.conn, campaign_id, tx.now_ms), False

        return self._write(actor, work)

    def find(self, text: str) -> CampaignRecord | None:
        """The campaign that a person means by an id or a part of one; None if it is none, or fits a run as well."""
        return self._read(lambda conn: _resolve_campaign(conn, text, self._database.clock(conn)[1]))

    def get(self, text: str) -> CampaignRecord:
        """The campaign with this id or unique part of one; raises ``NotFound``."""
        found = self.find(text)
        if found is None:
            known = ", ".join(one.campaign_id for one in self.list()[:3]) or "there are none yet"
            raise NotFound(
                f"{text!r} is not a campaign of this ledger; expected an id or a unique part of one, nearest: {known}",
                state="nothing was changed",
                hint="errata status lists runs and campaigns",
            )
        return found

    def list(self) -> tuple[CampaignRecord, ...]:
        """Campaigns, newest first."""
        query = select(campaign_table).order_by(campaign_table.c.planned_at.desc(), campaign_table.c.campaign_id)

        def work(conn: Connection) -> tuple[CampaignRecord, ...]:
            now_ms = self._database.clock(conn)[1]
            return tuple(_campaign_from_row(row, now_ms) for row in conn.execute(query))

        return self._read(work)

    def content(self, campaign_id: str) -> bytes:
        """The sealed bytes, verified by hashing them again."""
        return self._read(lambda conn: load_campaign_bytes(conn, find_campaign(conn, campaign_id)))

    def manifest(self, campaign_id: str) -> Campaign:
        """The sealed campaign, from verified bytes."""
        return from_plain(Campaign, json.loads(self.content(campaign_id)))

    def decide(
        self, campaign_id: str, digest: str, decision: str, note: str, actor: Actor, owes: Sequence[Owed] = ()
    ) -> tuple[CampaignRecord, bool]:
        """Record a person's decision on this digest; True with the campaign if the person decided so before.

        To decline ends the campaign, which then owes ``owes``. Whether enough people approved is asked for each member
        when it starts.
        """
        action = f"campaign.{decision}"

        def work(tx: Tx) -> tuple[CampaignRecord, bool]:
            found = find_campaign(tx.conn, campaign_id, tx.now_ms)
            load_campaign_bytes(tx.conn, found)
            if digest != found.digest:
                raise Refusal(
                    _wrong_digest_error(found, digest, decision),
                    run_id=campaign_id, action=action, body={"digest": digest},
                )  # fmt: skip
            known = load_approvals(tx.conn, campaign_id)
            if any((one.person, one.decision) == (actor.person, decision) for one in known):
                return found, True
            require_open(found, _DECISIONS[decision], action)
            body = {"person": actor.person, "digest": digest, "note": note}
            seq = append_entry(tx, actor, action, campaign_id, body).seq
            row = {"campaign_id": campaign_id, "decision": decision, "at": tx.at, "audit_seq": seq, **body}
            tx.conn.execute(campaign_approval.insert(), row)
            if decision == "declined":
                _set_state(tx, campaign_id, "declined", seq)
                _write_owed(tx, campaign_id, action, owes, actor)
            return find_campaign(tx.conn, campaign_id, tx.now_ms), False

        return self._write(actor, work)

    def end(
        self, campaign_id: str, reason: str, actor: Actor, owes: Sequence[Owed] = ()
    ) -> tuple[CampaignRecord, bool]:
        """Cancel a campaign: no member starts any more; True with it if it was cancelled before."""

        def work(tx: Tx) -> tuple[CampaignRecord, bool]:
            found = find_campaign(tx.conn, campaign_id, tx.now_ms)
            if found.state == "cancelled":
                return found, True
            require_open(found, "cancel", "campaign.cancelled", even_expired=True)
            seq = append_entry(tx, actor, "campaign.cancelled", campaign_id, {"reason": reason}).seq
            _set_state(tx, campaign_id, "cancelled", seq)
            _write_owed(tx, campaign_id, "campaign.cancelled", owes, actor)
            return find_campaign(tx.conn, campaign_id, tx.now_ms), False

        return self._write(actor, work)

    def begin_undo(self, campaign_id: str, run_ids: Sequence[str], actor: Actor) -> None:
        """Record that these members are rolled back one after the other; does nothing where that has begun before."""

        def work(tx: Tx) -> None:
            if not _is_undoing(tx.conn, campaign_id):
                append_entry(tx, actor, UNDO_ACTIONS[0], campaign_id, {"runs": list(run_ids)})

        self._write(actor, work)

    def end_undo(self, campaign_id: str, actor: Actor, owes: Sequence[Owed] = ()) -> str | None:
        """Record that the rollback of members is over, or was given up; returns the run that owes what follows.

        Does nothing where none has begun, and returns None.
        """

        def work(tx: Tx) -> str | None:
            if not _is_undoing(tx.conn, campaign_id):
                return None
            seq = append_entry(tx, actor, UNDO_ACTIONS[1], campaign_id, {}).seq
            return _write_owed(tx, campaign_id, f"{UNDO_ACTIONS[1]}.{seq}", owes, actor)

        return self._write(actor, work)

    def approvals(self, campaign_id: str) -> tuple[ApprovalRecord, ...]:
        """Decisions on the campaign, oldest first; their ``run_id`` is the campaign's id."""
        return self._read(lambda conn: load_approvals(conn, campaign_id))

    def record_step(
        self, campaign_id: str, step: str, outcome: str, detail: bytes, actor: Actor, body: Mapping[str, Any]
    ) -> StepRecord:
        """Record an attempt at a model of dbt, and its results."""

        def work(tx: Tx) -> StepRecord:
            find_campaign(tx.conn, campaign_id, tx.now_ms)
            (part,) = save_parts(tx, [detail])
            told = {**body, "step": step, "outcome": outcome, "detail": part}
            seq = append_entry(tx, actor, f"step.{outcome}", campaign_id, told).seq
            row = {"campaign_id": campaign_id, "step": step, "outcome": outcome, "detail": part, "at": tx.at}
            tx.conn.execute(campaign_step.insert(), row | {"audit_seq": seq})
            return StepRecord(campaign_id, step, outcome, part, tx.at, seq)

        return self._write(actor, work)

    def steps(self, campaign_id: str) -> tuple[StepRecord, ...]:
        """Attempts at models of dbt, oldest first."""
        query = select(campaign_step).where(campaign_step.c.campaign_id == campaign_id).order_by(campaign_step.c.id)
        return self._read(lambda conn: tuple(build_record(StepRecord, row) for row in conn.execute(query)))


def find_campaign(conn: Connection, campaign_id: str, now_ms: int = 0) -> CampaignRecord:
    """The campaign with exactly this id; raises when there is none."""
    row = conn.execute(select(campaign_table).where(campaign_table.c.campaign_id == campaign_id)).first()
    if row is None:
        raise NotFound(f"there is no campaign {campaign_id} in this ledger", state="nothing was changed")
    return _campaign_from_row(row, now_ms)


def load_campaign_bytes(conn: Connection, found: CampaignRecord) -> bytes:
    """The campaign's sealed bytes; raises when their hash is not its digest."""
    query = select(manifest_table.c.content).where(manifest_table.c.digest == found.digest)
    content = conn.execute(query).scalar()
    if not isinstance(content, bytes) or sha256(content) != found.digest:
        raise ManifestTampered(
            f"campaign {found.campaign_id} was refused; expected a manifest with SHA-256 {found.digest}, found "
            f"{digest_content(content)}",
            state="nothing was changed; the campaign cannot continue",
            hint="errata audit verify; then plan again",
        )
    return content


def load_approvals(conn: Connection, campaign_id: str) -> tuple[ApprovalRecord, ...]:
    """Decisions on the campaign, oldest first."""
    where = campaign_approval.c.campaign_id == campaign_id
    rows = conn.execute(select(campaign_approval).where(where).order_by(campaign_approval.c.id))
    return tuple(build_record(ApprovalRecord, row, run_id=campaign_id, break_glass="") for row in rows)


def require_open(found: CampaignRecord, deed: str, action: str, *, even_expired: bool = False) -> None:
    """Refuse to continue a campaign that is over."""
    if found.state == "open" and (even_expired or not found.is_expired):
        return
    why = found.state if found.state != "open" else f"expired since {found.until}"
    error = StateRefused(
        f"{deed} of {found.campaign_id} was refused; the campaign is {why}",
        state="nothing was changed",
        hint=f'plan what is left: errata plan {found.product} … --cascade --reason "…"',
    )
    raise Refusal(error, run_id=found.campaign_id, action=action, body={"found": why})


def _is_undoing(conn: Connection, campaign_id: str) -> bool:
    last = load_entries(conn, campaign_id, 1, UNDO_ACTIONS)
    return bool(last) and last[0].action == UNDO_ACTIONS[0]


def _write_owed(tx: Tx, campaign_id: str, cause: str, owes: Sequence[Owed], actor: Actor) -> str | None:
    """Owe what follows from the end of a campaign because of its first run; nothing follows where none has begun."""
    query = select(member_approval.c.run_id).where(member_approval.c.campaign_id == campaign_id)
    first: str | None = tx.conn.execute(query.order_by(member_approval.c.audit_seq).limit(1)).scalar()
    if first is not None:
        write_owed(tx, find_run(tx.conn, first), f"{campaign_id}/{cause}", owes, actor)
    return first


def _set_state(tx: Tx, campaign_id: str, state: str, seq: int) -> None:
    where = campaign_table.c.campaign_id == campaign_id
    tx.conn.execute(campaign_table.update().where(where).values(state=state, updated_at=tx.at, audit_seq=seq))


def _resolve_campaign(conn: Connection, text: str, now_ms: int) -> CampaignRecord | None:
    if not text or not text.isascii() or not text.isprintable():
        return None
    if exact := conn.execute(select(campaign_table).where(campaign_table.c.campaign_id == text)).first():
        return _campaign_from_row(exact, now_ms)
    like = campaign_table.c.campaign_id.contains(text, autoescape=True)
    # LIKE of SQLite ignores case
    found = [row for row in conn.execute(select(campaign_table).where(like)) if text in row.campaign_id]
    of_run = run_table.c.run_id.contains(text, autoescape=True)
    if len(found) != 1 or any(text in one for one in conn.execute(select(run_table.c.run_id).where(of_run)).scalars()):
        return None
    return _campaign_from_row(found[0], now_ms)


def _campaign_from_row(row: Row[Any], now_ms: int) -> CampaignRecord:
    return build_record(CampaignRecord, row, is_expired=bool(now_ms) and row.valid_until <= now_ms)


def _wrong_digest_error(found: CampaignRecord, digest: str, decision: str) -> ApprovalRefused:
    return ApprovalRefused(
        # without the right digest: the person takes it from the plan
        f"{_DECISIONS[decision]} of {found.campaign_id} was refused; {digest} is not the digest of the campaign",
        state="nothing was changed",
        hint=f"look at it: errata show {found.campaign_id}",
    )
