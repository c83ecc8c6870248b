"""The first schema.

Its number is that of the newest of the migrations that it replaces, which were never released: a ledger that has them
all has this schema.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = None


def upgrade() -> None:
    """Make every table; triggers and seeds follow each migration."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("os_user", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("single_user", sa.Integer(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.CheckConstraint("single_user IN (0, 1)", name=op.f("ck_audit_single_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
        sa.UniqueConstraint("hash", name=op.f("uq_audit_hash")),
    )
    op.create_index("ix_audit_run_id", "audit", ["run_id", "seq"])
    op.create_table(
        "audit_head",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.CheckConstraint("one = 1", name=op.f("ck_audit_head_one")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_audit_head")),
    )
    op.create_table(
        "guard",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("table_uuid", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guard")),
    )
    op.create_index("ix_guard_table_uuid", "guard", ["table_uuid"])
    op.create_table(
        "manifest",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_manifest")),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "part",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_part")),
    )
    op.create_table(
        "transition",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=False),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "from_state", "to_state", name=op.f("pk_transition")),
    )
    op.create_table(
        "run",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("manifest_digest", sa.Text(), nullable=False),
        sa.Column("product", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("planned_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("planned_at", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["manifest_digest"], ["manifest.digest"], name=op.f("fk_run_manifest_digest")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run")),
        sa.UniqueConstraint("manifest_digest", name=op.f("uq_run_manifest_digest")),
    )
    op.create_index("ix_run_table_name", "run", ["table_name", "state"])
    op.create_table(
        "approval",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.Column("break_glass", sa.Text(), server_default="", nullable=False),
        sa.CheckConstraint("decision IN ('approved', 'declined')", name=op.f("ck_approval_decision")),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_approval_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approval")),
    )
    op.create_index("ix_approval_run_id", "approval", ["run_id"])
    op.create_table(
        "candidate",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("base_snapshot_id", sa.Text(), nullable=True),
        sa.Column("snapshot_id", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_candidate_run_id")),
        sa.PrimaryKeyConstraint("run_id", "n", name=op.f("pk_candidate")),
    )
    op.create_table(
        "chunk",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("chunk_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=True),
        sa.Column("output_rows", sa.BigInteger(), nullable=True),
        sa.Column("output_files", sa.BigInteger(), nullable=True),
        sa.Column("output_bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.Column("wave", sa.Integer(), server_default="1", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_chunk_run_id")),
        sa.PrimaryKeyConstraint("run_id", "chunk_id", name=op.f("pk_chunk")),
    )
    op.create_index("ix_chunk_state", "chunk", ["run_id", "state", "position"])
    op.create_table(
        "publication",
        sa.Column("pub_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("base_snapshot_id", sa.Text(), nullable=True),
        sa.Column("undo_branch", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("previous_run_state", sa.Text(), nullable=False),
        sa.Column("result_snapshot_id", sa.Text(), nullable=True),
        sa.Column("data_files_written", sa.BigInteger(), nullable=True),
        sa.Column("intended_at", sa.Text(), nullable=False),
        sa.Column("settled_at", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('publish', 'rollback')", name=op.f("ck_publication_kind")),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_publication_run_id")),
        sa.PrimaryKeyConstraint("pub_id", name=op.f("pk_publication")),
        sa.UniqueConstraint("run_id", "n", name=op.f("uq_publication_run_id_n")),
    )
    op.create_table(
        "warning_acceptance",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("check_name", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.Column("findings", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_warning_acceptance_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_warning_acceptance")),
    )
    op.create_index("ix_warning_acceptance_run_id", "warning_acceptance", ["run_id"])
    op.create_table(
        "acceptance",
        sa.Column("seq", number, autoincrement=True, nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("pub_id", sa.Text(), nullable=False),
        sa.Column("origin_pub_id", sa.Text(), nullable=True),
        sa.Column("stands_on", number, nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["origin_pub_id"], ["publication.pub_id"], name=op.f("fk_acceptance_origin_pub_id")),
        sa.ForeignKeyConstraint(["pub_id"], ["publication.pub_id"], name=op.f("fk_acceptance_pub_id")),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_acceptance_run_id")),
        sa.ForeignKeyConstraint(["stands_on"], ["acceptance.seq"], name=op.f("fk_acceptance_stands_on")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_acceptance")),
    )
    op.create_index("ix_acceptance_partition", "acceptance", ["table_name", "partition", "seq"])
    op.create_index("ix_acceptance_run_id", "acceptance", ["run_id"])
    op.create_table(
        "attempt",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("chunk_id", sa.Text(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("process_started", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("heartbeat_at", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("snapshot_id", sa.Text(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("files", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id", "chunk_id"], ["chunk.run_id", "chunk.chunk_id"], name=op.f("fk_attempt_run_id_chunk_id")
        ),
        sa.PrimaryKeyConstraint("run_id", "chunk_id", "fence", name=op.f("pk_attempt")),
    )
    op.create_table(
        "hazard",
        sa.Column("pub_id", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Text(), nullable=False),
        sa.Column("closed_at", sa.Text(), nullable=True),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["pub_id"], ["publication.pub_id"], name=op.f("fk_hazard_pub_id")),
        sa.PrimaryKeyConstraint("pub_id", name=op.f("pk_hazard")),
    )
    op.create_table(
        "measurement",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("candidate_n", sa.Integer(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("exact", sa.Boolean(), nullable=False),
        sa.CheckConstraint("exact IN (0, 1)", name=op.f("ck_measurement_exact")).ddl_if(dialect="sqlite"),
        sa.ForeignKeyConstraint(
            ["run_id", "candidate_n"],
            ["candidate.run_id", "candidate.n"],
            name=op.f("fk_measurement_run_id_candidate_n"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement")),
    )
    op.create_index("ix_measurement_candidate", "measurement", ["run_id", "candidate_n"])
    op.create_table(
        "publication_detail",
        sa.Column("pub_id", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("part_digest", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["part_digest"], ["part.digest"], name=op.f("fk_publication_detail_part_digest")),
        sa.ForeignKeyConstraint(["pub_id"], ["publication.pub_id"], name=op.f("fk_publication_detail_pub_id")),
        sa.PrimaryKeyConstraint("pub_id", "n", name=op.f("pk_publication_detail")),
    )
    op.create_table(
        "scope_lock",
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("pub_id", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["pub_id"], ["publication.pub_id"], name=op.f("fk_scope_lock_pub_id")),
        sa.PrimaryKeyConstraint("table_name", "partition", name=op.f("pk_scope_lock")),
    )
    op.create_index("ix_scope_lock_pub_id", "scope_lock", ["pub_id"])
    op.create_table(
        "verdict",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("candidate_n", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("checks", sa.Text(), nullable=False),
        sa.Column("thresholds_digest", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "candidate_n"], ["candidate.run_id", "candidate.n"], name=op.f("fk_verdict_run_id_candidate_n")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict")),
    )
    op.create_index("ix_verdict_run_id", "verdict", ["run_id"])
    op.create_index("ix_attempt_state", "attempt", ["run_id", "state"])
    op.create_table(
        "fact",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_fact_run_id")),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_fact")),
    )
    op.create_table(
        "released",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("candidate_n", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("break_glass", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('release', 'publish', 'automatic')", name=op.f("ck_released_kind")),
        sa.ForeignKeyConstraint(
            ["run_id", "candidate_n"], ["candidate.run_id", "candidate.n"], name=op.f("fk_released_run_id_candidate_n")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_released")),
    )
    op.create_index("ix_released_run_id", "released", ["run_id"])
    op.create_table(
        "subject",
        sa.Column("pseudonym", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=True),
        sa.Column("secret", sa.LargeBinary(), nullable=True),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pseudonym", name=op.f("pk_subject")),
        sa.UniqueConstraint("handle", name=op.f("uq_subject_handle")),
    )
    op.create_table(
        "frozen_scope",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Text(), nullable=False),
        sa.Column("granted_at", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("most_until", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_frozen_scope_run_id")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_frozen_scope")),
    )
    op.create_index("ix_frozen_scope_table_name", "frozen_scope", ["table_name"])
    op.create_table(
        "live_write",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_live_write")),
    )
    op.create_index("ix_live_write_table_name", "live_write", ["table_name"])
    for name, table, columns, where in (
        ("ix_attempt_one_adopted", "attempt", ["run_id", "chunk_id"], sa.text("state = 'adopted'")),
        ("ix_publication_one_open", "publication", ["run_id"], sa.text("state = 'intended'")),
    ):
        op.create_index(name, table, columns, unique=True, sqlite_where=where, postgresql_where=where)
