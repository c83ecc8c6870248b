"""Replay of the audit log: derive from the entries, one by one, which rows the tables should hold. Pure.

Each entry that governs something names the row it inserted or updated. :mod:`errata.ledger.audit.verify_rows` compares
the result with the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.ledger.privacy.pseudonyms import is_pseudonym
from errata.model.recording.recorded_file import describe_redacted, describe_superseded

RowKey = tuple[Any, ...]

TABLES = (
    "run", "verdict", "warning_acceptance", "released", "fact", "guard", "candidate", "publication",
    "publication_detail", "acceptance", "hazard", "chunk", "attempt", "standing", "standing_decision",
    "standing_use", "campaign", "campaign_approval", "member_approval", "campaign_step", "outbox_item", "hold",
    "recorded_file",
)  # fmt: skip
"""Tables whose every row follows from the log, except that planned chunks follow from the manifest."""

_ADOPTED_FIELDS = ("snapshot_id", "rows", "files", "bytes")


@dataclass(frozen=True, slots=True)
class ReplayEntry:
    """The fields of an audit entry that the replay needs."""

    seq: int
    run: Any
    action: str
    body: Mapping[str, Any]
    at: str
    person: str

    @property
    def what(self) -> str:
        """The action after its first dot."""
        return self.action.partition(".")[2]

    def pick_fields(self, *names: str) -> dict[str, Any]:
        """The fields of the body with these names, as far as present."""
        return {name: self.body[name] for name in names if name in self.body}


@dataclass(slots=True)
class ExpectedRow:
    """Expected row: its values, and the entry that last wrote it."""

    seq: int
    values: dict[str, Any] = field(default_factory=dict)


class AuditReplay:
    """Expected rows after the entries replayed so far."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[RowKey, ExpectedRow]] = {name: {} for name in TABLES}
        self.decided: dict[RowKey, int] = {}
        """First entry of each decision by run, person and digest; it may be logged again when it meets the quorum."""
        self.decisions: dict[int, dict[str, Any]] = {}
        """Expected approval row of each decision entry, by entry number."""
        self.glass: dict[RowKey, Any] = {}  # latest break-glass reason by run, person and digest
        self.people: dict[str, int] = {}
        """First entry that names each pseudonym; negative: the entry that erased the person."""
        self.entries: dict[int, tuple[str | None, str]] = {}
        self.tops: dict[RowKey, RowKey] = {}  # the newest acceptance of each partition

    def hear(self, entry: ReplayEntry, names: Iterable[str]) -> None:
        """Replay one entry; ``names`` are the person and the OS user who acted."""
        self.entries[entry.seq] = (entry.run, entry.action)
        for name in names:
            if is_pseudonym(name):
                self.people.setdefault(name, entry.seq)
        hear = _REPLAYERS.get(entry.action) or _REPLAYERS.get(entry.action.partition(".")[0] + ".")
        if hear is not None:
            hear(self, entry)

    def put(self, table: str, key: RowKey, seq: int, /, **values: Any) -> None:
        """Expect a new row, or an update of one."""
        found = self.rows[table].setdefault(key, ExpectedRow(seq))
        found.seq = seq
        found.values |= values


def _replay_plan(account: AuditReplay, entry: ReplayEntry) -> None:
    # a member of a campaign was asked for by the person who planned the campaign, not by the one who starts it
    person = entry.body.get("person", entry.person)
    told = entry.pick_fields("manifest_digest", "product") | {"planned_by": person, "planned_at": entry.at}
    if "table" in entry.body:
        told["table_name"] = entry.body["table"]
    account.put("run", (entry.run,), entry.seq, **told)


def _replay_decision(account: AuditReplay, entry: ReplayEntry) -> None:
    if "digest" in entry.body and "person" in entry.body:
        account.decided.setdefault((entry.run, entry.body["person"], entry.body["digest"]), entry.seq)
        told = entry.pick_fields("person", "digest", "note") | {
            "at": entry.at,
            "break_glass": _find_break_glass(account, entry),
        }
        decision = "declined" if entry.action == "run.declined" else "approved"
        account.decisions[entry.seq] = {"run_id": entry.run, "decision": decision, **told}


def _replay_approval(account: AuditReplay, entry: ReplayEntry) -> None:
    """A decision on a run, or the approval of a member with its campaign."""
    if "member_digest" not in entry.body:
        _replay_decision(account, entry)
        return
    told = entry.pick_fields("campaign_digest", "derived") | {"digest": entry.body["member_digest"], "at": entry.at}
    told |= {"campaign_id": entry.body["campaign"], "product": entry.body["member"]}
    account.put("member_approval", (entry.run,), entry.seq, **told)


def _replay_campaign(account: AuditReplay, entry: ReplayEntry) -> None:
    match entry.what:
        case "planned":
            told = entry.pick_fields("product", "valid_until") | {"digest": entry.body["manifest_digest"]}
            told |= {"planned_by": entry.person, "planned_at": entry.at, "state": "open"}
            account.put("campaign", (entry.run,), entry.seq, **told)
        case "approved" | "declined":
            told = entry.pick_fields("person", "digest", "note") | {"decision": entry.what, "at": entry.at}
            account.put("campaign_approval", (entry.seq,), entry.seq, campaign_id=entry.run, **told)
            if entry.what == "declined":
                account.put("campaign", (entry.run,), entry.seq, state="declined")
        case "cancelled":
            account.put("campaign", (entry.run,), entry.seq, state="cancelled")
        case _:
            pass


def _replay_step(account: AuditReplay, entry: ReplayEntry) -> None:
    told = entry.pick_fields("step", "outcome", "detail") | {"at": entry.at}
    account.put("campaign_step", (entry.seq,), entry.seq, campaign_id=entry.run, **told)


def _replay_break_glass(account: AuditReplay, entry: ReplayEntry) -> None:
    account.glass[entry.run, entry.body["person"], entry.body["digest"]] = entry.body["why"]


def _find_break_glass(account: AuditReplay, entry: ReplayEntry) -> Any:
    """The break-glass reason of a decision, from the entry before it; empty for an ordinary decision."""
    key = (entry.run, entry.body.get("person"), entry.body.get("digest"))
    return account.glass.get(key, "") if entry.body.get("break_glass") else ""


def _replay_verdict(account: AuditReplay, entry: ReplayEntry) -> None:
    if "thresholds_digest" in entry.body:
        told = entry.pick_fields("passed", "thresholds_digest", "checks_digest") | {
            "person": entry.person,
            "at": entry.at,
        }
        account.put("verdict", (entry.seq,), entry.seq, run_id=entry.run, candidate_n=entry.body["n"], **told)


def _replay_warning(account: AuditReplay, entry: ReplayEntry) -> None:
    told = entry.pick_fields("why", "person", "findings") | {"check_name": entry.body["check"], "at": entry.at}
    account.put("warning_acceptance", (entry.seq,), entry.seq, run_id=entry.run, **told)


def _replay_release(account: AuditReplay, entry: ReplayEntry) -> None:
    told = entry.pick_fields("digest", "person", "kind", "note") | {
        "candidate_n": entry.body["candidate"],
        "at": entry.at,
    }
    told |= {"subject": entry.body["digest"], "break_glass": _find_break_glass(account, entry)}
    account.put("released", (entry.seq,), entry.seq, run_id=entry.run, **told)


def _replay_fact(account: AuditReplay, entry: ReplayEntry) -> None:
    account.put("fact", (entry.run, entry.what), entry.seq, value=entry.body, at=entry.at)


def _replay_guard(account: AuditReplay, entry: ReplayEntry) -> None:
    account.put("guard", (entry.seq,), entry.seq, **entry.pick_fields("table_uuid", "snapshot_id"))


def _replay_candidate(account: AuditReplay, entry: ReplayEntry) -> None:
    if entry.what in ("intended", "made", "abandoned"):
        told = entry.pick_fields("branch", "digest", "snapshot_id", "base_snapshot_id", "detail")
        if entry.what == "intended":
            told["at"] = entry.at
        account.put("candidate", (entry.run, entry.body["n"]), entry.seq, state=entry.what, **told)


def _replay_publication(account: AuditReplay, entry: ReplayEntry) -> None:
    pub, what, kind = entry.body.get("publication"), entry.what, entry.action.partition(".")[0]
    if pub is None:
        return
    if what == "intended":
        told = entry.pick_fields("partitions", "person", "reason") | {"table_name": entry.body["table"]}
        told |= {"release": entry.body.get("release") or None, "intended_at": entry.at, "settled_at": None}
        account.put("publication", (pub,), entry.seq, run_id=entry.run, kind=kind, state=what, **told)
    if what in ("intended", "updated"):
        account.put("publication", (pub,), entry.seq, **entry.pick_fields("base_snapshot_id"))
        told = {"pub_id": pub, "part_digest": entry.body["detail"], "at": entry.at}
        account.put("publication_detail", (entry.seq,), entry.seq, **told)
    if what in ("committed", "abandoned"):
        told = entry.pick_fields("data_files_written") | {"result_snapshot_id": entry.body["snapshot_id"]}
        told["settled_at"] = entry.at
        account.put("publication", (pub,), entry.seq, state=what, **told)
    if what == "committed":
        table = account.rows["publication"][pub,].values["table_name"]
        if kind == "rollback":
            told = {"table_name": table, "snapshot_id": entry.body["snapshot_id"], "closed_at": None}
            told["opened_at"] = entry.at
            account.put("hazard", (pub,), entry.seq, **told)
        for partition in entry.body["partitions"]:
            _replay_acceptance(account, entry, table, pub, partition, rollback=kind == "rollback")


def _replay_acceptance(
    account: AuditReplay, entry: ReplayEntry, table: str, pub: str, partition: str, *, rollback: bool
) -> None:
    """Expect a publication on top of the current row, a rollback as a copy of the row below the current one."""
    known, key, top = account.rows["acceptance"], (pub, partition), account.tops.get((table, partition))
    if rollback:
        under = known[top].values["stands_on"] if top else None
        below = known[under].values if under else {}
        told = {name: below.get(name) for name in ("run_id", "origin_pub_id", "stands_on")}
    else:
        told = {"run_id": entry.run, "origin_pub_id": pub, "stands_on": top}
    told |= {"table_name": table, "action": "rolled_back" if rollback else "published", "at": entry.at}
    account.put("acceptance", key, entry.seq, **told)
    account.tops[table, partition] = key


def _replay_hazard(account: AuditReplay, entry: ReplayEntry) -> None:
    account.put("hazard", (entry.body["publication"],), entry.seq, closed_at=entry.at)


def _replay_chunk(account: AuditReplay, entry: ReplayEntry) -> None:
    run, body, what = entry.run, entry.body, entry.what
    for chunk in body.get("chunks", [body.get("chunk")]):
        match what:
            case "claimed":
                account.put("chunk", (run, chunk), entry.seq, state="running", fence=body["fence"], snapshot_id=None)
                account.put("attempt", (run, chunk, body["fence"]), entry.seq, state="running", snapshot_id=None)
            case "adopted":
                output = entry.pick_fields(*_ADOPTED_FIELDS)
                listed = {"erasure_snapshot_id": body.get("erasure_snapshot_id")}
                account.put("attempt", (run, chunk, body["fence"]), entry.seq, state="adopted", **output, **listed)
                told = {name if name == "snapshot_id" else f"output_{name}": it for name, it in output.items()}
                account.put("chunk", (run, chunk), entry.seq, state="done", **told)
            case "retried" | "again":
                account.put("chunk", (run, chunk), entry.seq, state="pending")
            case "failed" | "quarantined" | "replaced":
                account.put("chunk", (run, chunk), entry.seq, state=what)
            case _:
                pass
    for chunk in body["by"] if what in ("replaced", "added") else ():
        origin = body.get("origin") or ",".join(body["chunks"])
        account.put("chunk", (run, chunk), entry.seq, state="pending", origin=origin)


def _replay_attempt(account: AuditReplay, entry: ReplayEntry) -> None:
    key = (entry.run, entry.body["chunk"], entry.body["fence"])
    account.put("attempt", key, entry.seq, state=entry.what, error_code=entry.body["reason"])
    # the entry of the chunk outcome follows and overrides this, unless the chunk just becomes pending again
    account.put("chunk", key[:2], entry.seq, state="pending")


def _replay_erasure(account: AuditReplay, entry: ReplayEntry) -> None:
    account.people[entry.body["subject"]] = -entry.seq


def _replay_standing(account: AuditReplay, entry: ReplayEntry) -> None:
    if entry.what == "used":
        told = entry.pick_fields("digest") | {"at": entry.at}
        account.put("standing_use", (entry.run,), entry.seq, **told)
        return
    digest = entry.body["digest"]
    if (digest,) not in account.rows["standing"]:
        told = {"product": entry.body["product"], "subject": digest, "at": entry.at}
        account.put("standing", (digest,), entry.seq, **told)
    decided = entry.pick_fields("digest", "person", "note") | {"decision": entry.what, "at": entry.at}
    account.put("standing_decision", (entry.seq,), entry.seq, **decided)


_ITEM_STATES = {"retried": "owed"}
"""States that entries of the outbox lead to, where the action has another name."""


_NOT_WAIVED = {"waived_by": None, "waived_why": None, "waived_ready": 0}


def _replay_outbox(account: AuditReplay, entry: ReplayEntry) -> None:
    state = _ITEM_STATES.get(entry.what, entry.what)
    told = entry.pick_fields("result") | {"state": state}
    if entry.what == "waived":
        told |= {"waived_by": entry.body["person"], "waived_why": entry.body["why"]}
        told["waived_ready"] = int(entry.body["ready"])
    for item in entry.body["items"]:
        named = {name: item[name] for name in ("key", "digest", "seq") if name in item}
        if "digest" in item:
            named |= {"run_id": entry.run, "pub_id": entry.body.get("publication"), "at": entry.at}
            named |= {"seq": item.get("seq"), "result": {}, **_NOT_WAIVED}
        account.put("outbox_item", (item["id"],), entry.seq, **(named | told))


def _replay_hold(account: AuditReplay, entry: ReplayEntry) -> None:
    key, what = (entry.body["hold"],), entry.what
    if what == "opened":
        told = entry.pick_fields(
            "n", "wave", "consumer", "partitions", "snapshot_id", "acknowledge", "on_timeout", "notice_until", "until"
        )
        told |= {"table_name": entry.body["table"], "run_id": entry.run, "opened_at": entry.at, "state": "open"}
        told |= dict.fromkeys(("acknowledged_by", "acknowledged_at", "skipped_by", "ended_at"))
        account.put("hold", key, entry.seq, **told)
    elif what == "skipped":
        account.put("hold", key, entry.seq, skipped_by=entry.body["person"])
    elif what == "acknowledged":
        told = {"acknowledged_by": entry.body["person"], "acknowledged_at": entry.at}
        account.put("hold", key, entry.seq, state=what, **told)
    else:
        account.put("hold", key, entry.seq, state=what, **({"ended_at": entry.at} if what == "ended" else {}))


def _replay_recording(account: AuditReplay, entry: ReplayEntry) -> None:
    body, table = entry.body, "recorded_file"
    if entry.what == "planned":
        for file_id in body["files"]:
            account.put(table, (file_id,), entry.seq, first_run=entry.run)
    elif entry.what == "expired":
        for one in body["files"]:
            told = {"status": "expired", "expired_at": entry.at, "why": body["policy"]}
            account.put(table, (one["file"],), entry.seq, **told)
    else:
        fixed = ("source", "name", "sha256", "bytes", "rows", "bad_rows", "attempt", "twin", "supersedes")
        start, end = body["range"] or (None, None)
        told = entry.pick_fields(*fixed, "content_sha256", "keep_until") | {"range_start": start, "range_end": end}
        is_redacted = entry.what == "redacted"
        status = "accepted" if is_redacted else entry.what
        told |= {"why": body["cause"], "status": status, "seen_at": entry.at, "first_run": None, "expired_at": None}
        account.put(table, (body["file"],), entry.seq, **told)
        if body["supersedes"]:
            why = (describe_redacted if is_redacted else describe_superseded)(body["file"])
            account.put(table, (body["supersedes"],), entry.seq, status="superseded", why=why)


_REPLAYERS: dict[str, Callable[[AuditReplay, ReplayEntry], None]] = {
    "run.planned": _replay_plan,
    "run.approved": _replay_approval,
    "run.declined": _replay_decision,
    "approval.recorded": _replay_decision,
    "run.validated": _replay_verdict,
    "run.rejected": _replay_verdict,
    "run.needs_acceptance": _replay_verdict,
    "run.attested": _replay_verdict,
    "run.differs": _replay_verdict,
    "verdict.recorded": _replay_verdict,
    "warning.accepted": _replay_warning,
    "run.released": _replay_release,
    "fact.": _replay_fact,
    "guard.recorded": _replay_guard,
    "candidate.": _replay_candidate,
    "publish.": _replay_publication,
    "rollback.": _replay_publication,
    "hazard.closed": _replay_hazard,
    "chunk.": _replay_chunk,
    "chunks.": _replay_chunk,
    "attempt.": _replay_attempt,
    "person.erased": _replay_erasure,
    "break_glass.": _replay_break_glass,
    "standing.": _replay_standing,
    "campaign.": _replay_campaign,
    "step.": _replay_step,
    "outbox.": _replay_outbox,
    "hold.": _replay_hold,
    "recording.": _replay_recording,
}
"""By action, or by its prefix up to the first dot."""
