"""Tables that readers wait for together: those of a campaign, from its first publication or rollback to its last.

A set begins with holds for the readers of all its tables. The first intent is refused without them, and names them.
From then on everything follows from what the ledger has: the set ends when every member is out, when those that are
missing cannot come any more, or when the campaign is given up; for a rollback, when that is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, select

from errata.ledger.audit.chain import load_entries
from errata.ledger.readiness.hold_rows import load_holds
from errata.ledger.records import CampaignRecord, PartitionState, PublicationRecord, RunRecord
from errata.ledger.schema.definition import campaign as campaign_table
from errata.ledger.schema.definition import hold as hold_table
from errata.ledger.schema.definition import member_approval, publication
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.base import find_run, run_from_row
from errata.ledger.store.campaign_members import find_member_of
from errata.ledger.store.campaigns import UNDO_ACTIONS, find_campaign, load_campaign_bytes
from errata.ledger.store.partition_history import find_partition_states, find_touched_states
from errata.ledger.store.publication_rows import load_publications, select_open_publications
from errata.model.audit import AuditEntry
from errata.model.consumer.hold import READERS
from errata.model.consumer.readiness import Claim, ReadyState
from errata.model.consumer.table_set import SetMember, TableSet, is_incomplete, join_tables
from errata.model.run import FINAL, PublicationState, RunState

_LANDING = (PublicationState.INTENDED.value, PublicationState.COMMITTED.value)
_OUT = frozenset({RunState.PUBLISHED, RunState.SUPERSEDED})
_ENDED = FINAL - _OUT


def find_set(conn: Connection, run: RunRecord, kind: str) -> TableSet | None:
    """The tables whose readers are held before this publication or rollback; None unless it is a campaign's first."""
    member = find_member_of(conn, run.run_id)
    if member is None:
        return None
    campaign = find_campaign(conn, member.campaign_id)
    found = _find_undone_set(conn, campaign, run) if kind == "rollback" else _find_published_set(conn, campaign)
    return found if found is not None and len(found.partitions) > 1 else None


def _find_published_set(conn: Connection, campaign: CampaignRecord) -> TableSet | None:
    if any(one.kind == "publish" for one in _load_landing(conn, _list_forerunners(conn, campaign))):
        return None  # something is out, or on its way: its intent began the set, or was before there was a ready table
    members = json.loads(load_campaign_bytes(conn, campaign))["members"]
    tables = {one["manifest"]["target"]["table"]: tuple(one["manifest"]["partitions"]) for one in members}
    return TableSet(campaign.campaign_id, tables)


def _find_undone_set(conn: Connection, campaign: CampaignRecord, run: RunRecord) -> TableSet | None:
    undo = find_open_undo(conn, campaign.campaign_id)
    if undo is None or run.run_id not in undo.body["runs"]:
        return None  # a rollback of this member alone
    if _find_beginning(conn, campaign.campaign_id, undo.seq) is not None:
        return None
    tables = {}
    for one in (find_run(conn, run_id) for run_id in undo.body["runs"]):
        states = find_partition_states(conn, one)
        tables[one.table] = tuple(name for name in one.partitions if states[name] is PartitionState.ACCEPTED)
    return TableSet(campaign.campaign_id, {table: names for table, names in tables.items() if names}, undo.seq)


def find_open_undo(conn: Connection, campaign_id: str) -> AuditEntry | None:
    """The entry with which a rollback of the campaign began that has not ended; None if there is none."""
    entries = load_entries(conn, campaign_id, 1, UNDO_ACTIONS)
    return entries[0] if entries and entries[0].action == UNDO_ACTIONS[0] else None


def iterate_set_claims(conn: Connection, table: str) -> Iterator[Claim]:
    """Claims on a table by campaigns that have begun and are not complete."""
    for campaign_id, tables in _load_groups(conn).items():
        if table in tables:
            claim = _find_claim(conn, find_campaign(conn, campaign_id), table, tables)
            if claim is not None:
                yield claim


def _find_claim(conn: Connection, campaign: CampaignRecord, table: str, tables: set[str]) -> Claim | None:
    undo = find_open_undo(conn, campaign.campaign_id)
    if undo is None and campaign.state != "open":
        return None
    begun = _find_beginning(conn, campaign.campaign_id, undo.seq if undo else 0)
    if begun is None:
        return None
    held = load_holds(conn, hold_table.c.hold_id.in_(begun.release["set"]["holds"]))
    own = next((one for one in held if one.table == table), None)
    if own is None:
        return None
    state = ReadyState.HELD
    if undo is None:
        runs = _load_runs(conn, campaign)
        out = {run.table for run in runs if run.state in _OUT}
        # the usual case without opening the manifest: most campaigns are complete
        if tables <= out or not is_incomplete(_list_members(conn, campaign, runs)):
            return None
        state = ReadyState.SETTLING if table in out else ReadyState.HELD
    return Claim(
        state, campaign.campaign_id, own.partitions, own.opened_at, own.snapshot_id, is_shared=True, passes=False
    )


def list_joined(conn: Connection, tables: Sequence[str]) -> tuple[str, ...]:
    """These tables with all that campaigns connect them with: what the ready table says of them changes at once."""
    return join_tables(_load_groups(conn), tables)


def _load_groups(conn: Connection) -> dict[str, set[str]]:
    """Tables of the campaigns that held their readers together."""
    c = hold_table.c
    query = select(member_approval.c.campaign_id, c.table_name).distinct()
    query = query.where(c.run_id == member_approval.c.run_id, c.consumer == READERS)
    found: dict[str, set[str]] = {}
    for campaign_id, table in conn.execute(query).tuples():
        found.setdefault(campaign_id, set()).add(table)
    return found


def _find_beginning(conn: Connection, campaign_id: str, undo: int) -> PublicationRecord | None:
    """The publication, or the rollback of this undo, with which the campaign's set began; None if it has not."""
    found = _load_landing(conn, (campaign_id,))
    return next((one for one in found if one.release.get("set", {}).get("undo") == undo), None)


def _load_landing(conn: Connection, campaign_ids: Sequence[str]) -> tuple[PublicationRecord, ...]:
    """Publications and rollbacks of members that landed or may land, oldest first."""
    mine = select(member_approval.c.run_id).where(member_approval.c.campaign_id.in_(campaign_ids))
    c = publication.c
    query = select(publication).where(c.run_id.in_(mine), c.state.in_(_LANDING))
    return load_publications(conn, query.order_by(c.intended_at, c.run_id, c.n))


def _list_forerunners(conn: Connection, campaign: CampaignRecord) -> list[str]:
    """The campaign, and those that it continues."""
    found = [campaign.campaign_id]
    while (before := campaign.supersedes) is not None and before not in found:
        campaign = find_campaign(conn, before)
        if campaign.state == "open":  # one that was given up left no set behind
            found.append(before)
    return found


def _load_runs(conn: Connection, campaign: CampaignRecord) -> tuple[RunRecord, ...]:
    """Runs of the members, and of campaigns that took their place, oldest first."""
    chain = [campaign.campaign_id]
    while True:
        query = select(campaign_table.c.campaign_id).where(campaign_table.c.supersedes.in_(chain))
        more = [one for one in conn.execute(query).scalars() if one not in chain]
        if not more:
            break
        chain += more
    mine = select(member_approval.c.run_id).where(member_approval.c.campaign_id.in_(chain))
    rows = select(run_table).where(run_table.c.run_id.in_(mine)).order_by(run_table.c.planned_at, run_table.c.run_id)
    return tuple(run_from_row(row) for row in conn.execute(rows).all())


def _list_members(conn: Connection, campaign: CampaignRecord, runs: Sequence[RunRecord]) -> Iterator[SetMember]:
    newest = {run.product: run for run in runs}
    for one in json.loads(load_campaign_bytes(conn, campaign))["members"]:
        product, after = one["product"], tuple(one["after"])
        run = newest.get(product)
        if run is None:
            yield SetMember(product, after)
            continue
        is_going = bool(conn.execute(select_open_publications(None, run.run_id)).first())
        yield SetMember(
            product,
            after,
            has_begun=is_going or PartitionState.ACCEPTED in find_touched_states(conn, run).values(),
            is_out=run.state in _OUT,
            has_ended=run.state in _ENDED,
        )
