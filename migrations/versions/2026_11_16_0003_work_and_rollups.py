"""The queue of record, the counts folded from it, and signs of life.

The first schema; nothing to lock.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "heartbeats",
        sa.Column("part", sa.Text(collation="C"), nullable=False),
        sa.Column("beat_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("part", name=op.f("heartbeats_pkey")),
    )
    op.create_table(
        "rollup_counts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("tier", sa.Text(collation="C"), nullable=False),
        sa.Column("bucket_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("successes", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("aborted", sa.BigInteger(), nullable=False),
        sa.Column("abandoned", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("rollup_counts_domain_check")),
        sa.CheckConstraint("tier IN ('hour', 'day', 'month')", name=op.f("rollup_counts_tier_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollup_counts_project_id_fkey")),
        sa.PrimaryKeyConstraint(
            "project_id",
            "domain",
            "source_id",
            "policy_id",
            "task_id",
            "tier",
            "bucket_at",
            name=op.f("rollup_counts_pkey"),
        ),
    )
    op.create_table(
        "work",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column("episode_ids", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.Column("revision", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("sign", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("due_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('fold')", name=op.f("work_kind_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("work_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("work_pkey")),
    )
    op.create_index(op.f("work_due_at_idx"), "work", ["due_at"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("work_due_at_idx"), table_name="work")
    op.drop_table("work")
    op.drop_table("rollup_counts")
    op.drop_table("heartbeats")
