"""The tables of the ledger. Pure: nothing here touches a database.

Lists and small objects are canonical JSON text; long lists are parts. ``audit_seq`` is the audit entry a row was last
written with, so that a truncated log is noticed. A new ledger is made from this; when you change a table here, add a
migration for existing ledgers under ``ledger/db/migrations/versions`` and its number to ``KNOWN_VERSIONS``.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from errata.ledger.privacy.pseudonyms import PersonalJson, PersonName, SealedText

KNOWN_VERSIONS = (
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
)
LATEST_VERSION = KNOWN_VERSIONS[-1]

PARTIAL_INDEXES = {
    "ix_attempt_one_adopted": ("attempt", ("run_id", "chunk_id"), "state = 'adopted'"),
    "ix_publication_one_open": ("publication", ("run_id",), "state = 'intended'"),
}
"""Unique indexes over some rows.

They are not declared on their tables because ``postgresql_where`` imports the whole PostgreSQL dialect, a tenth of a
second in every command.
"""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows itself only when the key has the type INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")


def _audit_seq_column() -> Column[int]:
    return Column("audit_seq", BigInteger, nullable=False)


meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

transition = Table(
    "transition",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("from_state", Text, primary_key=True),
    Column("to_state", Text, primary_key=True),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("at", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("os_user", Text, nullable=False),
    Column("host", Text, nullable=False),
    # An integer, so that verification sees the stored value and not a driver's conversion to bool.
    Column("single_user", Integer, nullable=False),
    Column("action", Text, nullable=False),
    Column("run_id", Text),
    Column("body", Text, nullable=False),
    CheckConstraint("single_user IN (0, 1)", name="single_user"),
    Index("ix_audit_run_id", "run_id", "seq"),
)

audit_head = Table(
    "audit_head",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    CheckConstraint("one = 1", name="one"),
)

subject = Table(
    "subject",
    metadata,
    Column("pseudonym", Text, primary_key=True),
    Column("handle", Text, unique=True),
    Column("secret", LargeBinary),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
)

part = Table(
    "part",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("at", Text, nullable=False),
)

manifest = Table(
    "manifest",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("at", Text, nullable=False),
)

run = Table(
    "run",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("manifest_digest", Text, ForeignKey("manifest.digest"), nullable=False, unique=True),
    Column("product", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("partitions", Text, nullable=False),
    Column("planned_by", PersonName, nullable=False),
    Column("reason", Text, nullable=False),
    Column("planned_at", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    _audit_seq_column(),
    Column("supersedes", Text),  # as the manifest says, so that successors are found without reading manifests
    Column("kind", Text),  # as the manifest says, which a trigger makes sure of
    Index("ix_run_table_name", "table_name", "state"),
    Index("ix_run_supersedes", "supersedes"),
    # all that counting runs and finding the newest needs: the lists of partitions before ``state`` are long
    Index("ix_run_state", "state", "updated_at", "product", "run_id"),
)

approval = Table(
    "approval",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("run_id", Text, ForeignKey("run.run_id"), nullable=False),
    Column("person", PersonName, nullable=False),
    Column("decision", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("note", SealedText, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    Column("break_glass", SealedText, nullable=False, server_default=""),  # why the person approved alone
    CheckConstraint("decision IN ('approved', 'declined')", name="decision"),
    Index("ix_approval_run_id", "run_id"),
)

chunk = Table(
    "chunk",
    metadata,
    Column("run_id", Text, ForeignKey("run.run_id"), primary_key=True),
    Column("chunk_id", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("partitions", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("snapshot_id", Text),
    Column("output_rows", BigInteger),
    Column("output_files", BigInteger),
    Column("output_bytes", BigInteger),
    Column("seconds", Float),
    Column("error_code", Text),
    Column("error", Text),
    _audit_seq_column(),
    # 0 = canary: chunks of later waves start only after the canary has passed
    Column("wave", Integer, nullable=False, server_default="1"),
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("not_before", BigInteger, nullable=False, server_default="0"),
    Column("origin", Text),
    Index("ix_chunk_state", "run_id", "state", "position"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("chunk_id", Text, primary_key=True),
    Column("fence", Integer, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("process_started", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("heartbeat_at", Text, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Column("ended_at", Text),
    Column("snapshot_id", Text),
    Column("rows", BigInteger),
    Column("files", BigInteger),
    Column("bytes", BigInteger),
    Column("seconds", Float),
    Column("error_code", Text),
    Column("error", Text),
    _audit_seq_column(),
    Column("cost", Text),
    Column("erasure_snapshot_id", Text),
    ForeignKeyConstraint(["run_id", "chunk_id"], ["chunk.run_id", "chunk.chunk_id"]),
    Index("ix_attempt_state", "run_id", "state"),
)

fact = Table(
    "fact",
    metadata,
    Column("run_id", Text, ForeignKey("run.run_id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", PersonalJson, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
)

candidate = Table(
    "candidate",
    metadata,
    Column("run_id", Text, ForeignKey("run.run_id"), primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("branch", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("base_snapshot_id", Text),
    Column("snapshot_id", Text),
    Column("detail", Text, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
)

measurement = Table(
    "measurement",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("candidate_n", Integer, nullable=False),
    Column("scope", Text, nullable=False),
    Column("partition", Text),
    Column("name", Text, nullable=False),
    Column("value", Text),
    Column("exact", Boolean, nullable=False),
    CheckConstraint("exact IN (0, 1)", name="exact").ddl_if(dialect="sqlite"),
    ForeignKeyConstraint(["run_id", "candidate_n"], ["candidate.run_id", "candidate.n"]),
    Index("ix_measurement_candidate", "run_id", "candidate_n"),
)

verdict = Table(
    "verdict",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("candidate_n", Integer, nullable=False),
    Column("passed", Boolean, nullable=False),
    Column("checks", PersonalJson, nullable=False),
    Column("thresholds_digest", Text, nullable=False),
    Column("person", PersonName, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    ForeignKeyConstraint(["run_id", "candidate_n"], ["candidate.run_id", "candidate.n"]),
    Index("ix_verdict_run_id", "run_id"),
)

warning_acceptance = Table(
    "warning_acceptance",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("run_id", Text, ForeignKey("run.run_id"), nullable=False),
    Column("check_name", Text, nullable=False),
    Column("why", SealedText, nullable=False),
    Column("person", PersonName, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    Column("findings", Text, nullable=False, server_default=""),  # digest of what was accepted
    Index("ix_warning_acceptance_run_id", "run_id"),
)

released = Table(
    "released",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("candidate_n", Integer, nullable=False),
    Column("digest", Text, nullable=False),  # of the subject
    Column("subject", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("person", PersonName, nullable=False),
    Column("note", SealedText, nullable=False),
    Column("break_glass", SealedText, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    CheckConstraint("kind IN ('release', 'publish', 'automatic')", name="kind"),
    ForeignKeyConstraint(["run_id", "candidate_n"], ["candidate.run_id", "candidate.n"]),
    Index("ix_released_run_id", "run_id"),
)

publication = Table(
    "publication",
    metadata,
    Column("pub_id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("run.run_id"), nullable=False),
    Column("n", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("partitions", Text, nullable=False),
    Column("person", PersonName, nullable=False),
    Column("reason", SealedText, nullable=False),
    Column("base_snapshot_id", Text),
    Column("undo_branch", Text, nullable=False),
    Column("release", PersonalJson, nullable=False),
    Column("owner", Text),
    Column("previous_run_state", Text, nullable=False),
    Column("result_snapshot_id", Text),
    Column("data_files_written", BigInteger),
    Column("intended_at", Text, nullable=False),
    Column("settled_at", Text),
    Column("lease_until", BigInteger, nullable=False),
    _audit_seq_column(),
    CheckConstraint("kind IN ('publish', 'rollback')", name="kind"),
    UniqueConstraint("run_id", "n"),
)

publication_detail = Table(
    "publication_detail",
    metadata,
    Column("pub_id", Text, ForeignKey("publication.pub_id"), primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("part_digest", Text, ForeignKey("part.digest"), nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
)

scope_lock = Table(
    "scope_lock",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("partition", Text, primary_key=True),
    Column("pub_id", Text, ForeignKey("publication.pub_id"), nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Index("ix_scope_lock_pub_id", "pub_id"),
)

acceptance = Table(
    "acceptance",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=True),
    Column("table_name", Text, nullable=False),
    Column("partition", Text, nullable=False),
    Column("run_id", Text, ForeignKey("run.run_id")),
    Column("pub_id", Text, ForeignKey("publication.pub_id"), nullable=False),
    Column("origin_pub_id", Text, ForeignKey("publication.pub_id")),
    Column("stands_on", Number, ForeignKey("acceptance.seq")),
    Column("action", Text, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    Index("ix_acceptance_partition", "table_name", "partition", "seq"),
    Index("ix_acceptance_run_id", "run_id"),
)

hazard = Table(
    "hazard",
    metadata,
    Column("pub_id", Text, ForeignKey("publication.pub_id"), primary_key=True),
    Column("table_name", Text, nullable=False),
    Column("snapshot_id", Text, nullable=False),
    Column("opened_at", Text, nullable=False),
    Column("closed_at", Text),
    _audit_seq_column(),
)

guard = Table(
    "guard",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("table_uuid", Text, nullable=False),
    Column("snapshot_id", Text, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    Index("ix_guard_table_uuid", "table_uuid"),
)

frozen_scope = Table(
    "frozen_scope",
    metadata,
    Column("run_id", Text, ForeignKey("run.run_id"), primary_key=True),
    Column("wave", Integer, primary_key=True, autoincrement=False),
    Column("table_name", Text, nullable=False),
    Column("partitions", Text, nullable=False),  # those not published yet
    Column("person", PersonName, nullable=False),
    Column("opened_at", Text, nullable=False),
    Column("granted_at", Text),  # when the last live job ended; until then live jobs that began earlier may finish
    Column("lease_until", BigInteger, nullable=False),
    Column("most_until", BigInteger, nullable=False),
    Column("ended_at", Text),
    _audit_seq_column(),
    Index("ix_frozen_scope_table_name", "table_name"),
)

live_write = Table(
    "live_write",
    metadata,
    Column("token", Text, primary_key=True),
    Column("table_name", Text, nullable=False),
    Column("partitions", Text, nullable=False),  # empty: the whole table
    Column("owner", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Index("ix_live_write_table_name", "table_name"),
)

standing = Table(
    "standing",
    metadata,
    Column("digest", Text, primary_key=True),  # of the subject
    Column("product", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    Index("ix_standing_product", "product"),
)

standing_decision = Table(
    "standing_decision",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("digest", Text, ForeignKey("standing.digest"), nullable=False),
    Column("person", PersonName, nullable=False),
    Column("decision", Text, nullable=False),
    Column("note", SealedText, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    CheckConstraint("decision IN ('approved', 'revoked')", name="decision"),
    Index("ix_standing_decision_digest", "digest"),
)

standing_use = Table(
    "standing_use",
    metadata,
    Column("run_id", Text, ForeignKey("run.run_id"), primary_key=True),
    Column("digest", Text, ForeignKey("standing.digest"), nullable=False),
    Column("product", Text, nullable=False),
    Column("partitions", Integer, nullable=False),
    Column("at", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    _audit_seq_column(),
    Index("ix_standing_use_product", "product", "at_ms"),
)

campaign = Table(
    "campaign",
    metadata,
    Column("campaign_id", Text, primary_key=True),
    Column("digest", Text, ForeignKey("manifest.digest"), nullable=False, unique=True),
    Column("product", Text, nullable=False),
    Column("planned_by", PersonName, nullable=False),
    Column("reason", Text, nullable=False),
    Column("planned_at", Text, nullable=False),
    Column("valid_until", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("supersedes", Text),
    Column("updated_at", Text, nullable=False),
    _audit_seq_column(),
    CheckConstraint("state IN ('open', 'declined', 'cancelled')", name="state"),
)

campaign_approval = Table(
    "campaign_approval",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("campaign_id", Text, ForeignKey("campaign.campaign_id"), nullable=False),
    Column("person", PersonName, nullable=False),
    Column("decision", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("note", SealedText, nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    CheckConstraint("decision IN ('approved', 'declined')", name="decision"),
    Index("ix_campaign_approval_campaign_id", "campaign_id"),
)

# the approval of a run that is a member of a campaign
member_approval = Table(
    "member_approval",
    metadata,
    Column("run_id", Text, ForeignKey("run.run_id"), primary_key=True),
    Column("campaign_id", Text, ForeignKey("campaign.campaign_id"), nullable=False),
    Column("product", Text, nullable=False),
    Column("campaign_digest", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of the member's manifest
    Column("derived", Text, ForeignKey("part.digest"), nullable=False),  # what the manifest was derived from
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    UniqueConstraint("campaign_id", "product"),
)

# one attempt at a step of a campaign that is not a run: a model of dbt
campaign_step = Table(
    "campaign_step",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("campaign_id", Text, ForeignKey("campaign.campaign_id"), nullable=False),
    Column("step", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, ForeignKey("part.digest"), nullable=False),
    Column("at", Text, nullable=False),
    _audit_seq_column(),
    CheckConstraint("outcome IN ('built', 'failed')", name="outcome"),
    Index("ix_campaign_step_campaign_id", "campaign_id"),
)

# what follows a decision or a commit and is paid afterwards
outbox_item = Table(
    "outbox_item",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False, unique=True),
    Column("queue", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("consumer", Text, nullable=False),
    Column("run_id", Text, ForeignKey("run.run_id"), nullable=False),
    Column("pub_id", Text, ForeignKey("publication.pub_id")),  # the publication that it is conditional on
    Column("table_name", Text, nullable=False),
    Column("partitions", Text, nullable=False),  # empty: the whole table
    Column("payload", PersonalJson, nullable=False),
    Column("state", Text, nullable=False),
    Column("seq", BigInteger, unique=True),  # set when it becomes owed
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("not_before", BigInteger, nullable=False, server_default="0"),
    Column("last_error", Text),
    Column("owner", Text),  # another one for each claim
    Column("fence", Integer, nullable=False, server_default="0"),
    Column("lease_until", BigInteger, nullable=False, server_default="0"),
    Column("progress", Text, nullable=False, server_default="{}"),
    Column("result", Text, nullable=False, server_default="{}"),
    Column("at", Text, nullable=False),
    Column("owed_at", Text),
    Column("ended_at", Text),
    Column("waived_by", PersonName),
    Column("waived_why", SealedText),
    Column("waived_ready", Integer, nullable=False, server_default="0"),
    _audit_seq_column(),
    CheckConstraint("waived_ready IN (0, 1)", name="waived_ready"),
    Index("ix_outbox_item_queue", "state", "queue", "seq"),
    Index("ix_outbox_item_run_id", "run_id", "state", "queue"),
    Index("ix_outbox_item_table_name", "table_name", "state", "queue"),
    Index("ix_outbox_item_pub_id", "pub_id"),
    Index("ix_outbox_item_lease", "queue", "lease_until"),
)

# the time that a consumer gets before a publication
hold = Table(
    "hold",
    metadata,
    Column("hold_id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("run.run_id"), nullable=False),
    Column("n", Integer, nullable=False),
    Column("wave", Integer, nullable=False),  # 0: the whole run
    Column("consumer", Text, nullable=False),  # empty: readers of the ready table
    Column("table_name", Text, nullable=False),
    Column("partitions", Text, nullable=False),
    Column("snapshot_id", Text),
    Column("acknowledge", Integer, nullable=False),
    Column("on_timeout", Text, nullable=False),
    Column("opened_at", Text, nullable=False),
    Column("notice_until", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("acknowledged_by", PersonName),
    Column("acknowledged_at", Text),
    Column("skipped_by", PersonName),
    Column("ended_at", Text),
    _audit_seq_column(),
    UniqueConstraint("run_id", "n"),
    CheckConstraint("acknowledge IN (0, 1)", name="acknowledge"),
    CheckConstraint("on_timeout IN ('go', 'stop')", name="on_timeout"),
    Index("ix_hold_consumer", "consumer", "state"),
    Index("ix_hold_table_name", "table_name", "state"),
)

# one row per file that was imported or recorded; places are relative to the location of recordings
recorded_file = Table(
    "recorded_file",
    metadata,
    Column("file_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bad_rows", BigInteger, nullable=False),
    Column("range_start", Text),
    Column("range_end", Text),
    Column("columns", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("produced_at", Text, nullable=False),
    Column("seen_at", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("manifest_id", Text),  # the producer's own id of the delivery
    Column("first_run", Text, ForeignKey("run.run_id")),  # the first run that was planned with it
    Column("status", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("twin", Text),
    Column("supersedes", Text),
    Column("keep_until", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("content_bytes", BigInteger, nullable=False),
    Column("content_sha256", Text, nullable=False),
    Column("expired_at", Text),
    _audit_seq_column(),
    UniqueConstraint("identity", "attempt"),
    CheckConstraint("status IN ('accepted', 'rejected', 'superseded', 'expired')", name="status"),
    Index("ix_recorded_file_source", "source", "status"),
)

# the last value of something that was looked at, for metrics; overwritten by the next look, and no evidence of anything
reading = Table(
    "reading",
    metadata,
    Column("name", Text, primary_key=True),
    Column("product", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("value", Float),  # NULL: it could not be read
    Column("detail", Text, nullable=False),
    Column("at", Text, nullable=False),
)
