"""Cells, sketches, sessions and contracts beside the counts, and the indexes that reading needs.

Building the indexes locks `episodes` against writing while it lasts. Everything is folded anew afterwards: the
counts are emptied and every stored episode becomes due again.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

DEPLOYMENTS = "episodes_project_id_deployment_id_started_at_idx"
DUE_AGAIN = """
INSERT INTO work (project_id, kind, episode_ids, revision)
SELECT project_id, 'fold', array_agg(id ORDER BY id), revision
FROM (SELECT project_id, id, revision, row_number() OVER (PARTITION BY project_id, revision ORDER BY id) AS place
      FROM episodes) AS numbered
GROUP BY project_id, revision, place / 500
"""


def upgrade() -> None:
    op.create_table(
        "cells",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("robot_id", sa.Integer(), nullable=True),
        sa.Column("site_id", sa.Integer(), nullable=True),
        sa.Column("stage", sa.Text(collation="C"), nullable=True),
        sa.Column("levels", postgresql.JSONB(), nullable=False),
        sa.CheckConstraint("stage IN ('offline', 'shadow', 'supervised', 'full')", name=op.f("cells_stage_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("cells_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("cells_pkey")),
        sa.UniqueConstraint("project_id", "content_hash", name=op.f("cells_project_id_content_hash_key")),
    )
    op.create_table(
        "pooled_conditions",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("levels", sa.Integer(), nullable=False),
        sa.Column(
            "pooled_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("pooled_conditions_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "policy_id", "task_id", "name", name=op.f("pooled_conditions_pkey")),
    )
    op.create_table(
        "rollup_cells",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("tier", sa.Text(collation="C"), nullable=False),
        sa.Column("bucket_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("cell_id", sa.Integer(), nullable=False),
        sa.Column("successes", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("aborted", sa.BigInteger(), nullable=False),
        sa.Column("abandoned", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("rollup_cells_domain_check")),
        sa.CheckConstraint("tier IN ('day', 'month')", name=op.f("rollup_cells_tier_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollup_cells_project_id_fkey")),
        sa.PrimaryKeyConstraint(
            "project_id",
            "domain",
            "policy_id",
            "task_id",
            "source_id",
            "tier",
            "bucket_at",
            "cell_id",
            name=op.f("rollup_cells_pkey"),
        ),
    )
    op.create_table(
        "rollup_contracts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("tier", sa.Text(collation="C"), nullable=False),
        sa.Column("bucket_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("contract_id", sa.Integer(), nullable=False),
        sa.Column("episodes", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("rollup_contracts_domain_check")),
        sa.CheckConstraint("tier IN ('day', 'month')", name=op.f("rollup_contracts_tier_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollup_contracts_project_id_fkey")),
        sa.PrimaryKeyConstraint(
            "project_id",
            "domain",
            "policy_id",
            "task_id",
            "source_id",
            "tier",
            "bucket_at",
            "contract_id",
            name=op.f("rollup_contracts_pkey"),
        ),
    )
    op.create_table(
        "rollup_failures",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("tier", sa.Text(collation="C"), nullable=False),
        sa.Column("bucket_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("cell_id", sa.Integer(), nullable=False),
        sa.Column("signature_id", sa.Integer(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("rollup_failures_domain_check")),
        sa.CheckConstraint("tier IN ('day', 'month')", name=op.f("rollup_failures_tier_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollup_failures_project_id_fkey")),
        sa.PrimaryKeyConstraint(
            "project_id",
            "domain",
            "policy_id",
            "task_id",
            "source_id",
            "tier",
            "bucket_at",
            "cell_id",
            "signature_id",
            name=op.f("rollup_failures_pkey"),
        ),
    )
    op.create_table(
        "rollup_sessions",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("bucket_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("session", sa.Text(collation="C"), nullable=False),
        sa.Column("successes", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("rollup_sessions_domain_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollup_sessions_project_id_fkey")),
        sa.PrimaryKeyConstraint(
            "project_id",
            "domain",
            "policy_id",
            "task_id",
            "source_id",
            "bucket_at",
            "session",
            name=op.f("rollup_sessions_pkey"),
        ),
    )
    op.create_table(
        "rollup_values",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column("outcome", sa.Text(collation="C"), nullable=False),
        sa.Column("tier", sa.Text(collation="C"), nullable=False),
        sa.Column("bucket_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("rollup_values_domain_check")),
        sa.CheckConstraint("kind IN ('metric', 'signal')", name=op.f("rollup_values_kind_check")),
        sa.CheckConstraint("outcome IN ('success', 'failure')", name=op.f("rollup_values_outcome_check")),
        sa.CheckConstraint("tier IN ('day', 'month')", name=op.f("rollup_values_tier_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollup_values_project_id_fkey")),
        sa.PrimaryKeyConstraint(
            "project_id",
            "domain",
            "policy_id",
            "task_id",
            "source_id",
            "kind",
            "outcome",
            "tier",
            "bucket_at",
            name=op.f("rollup_values_pkey"),
        ),
    )
    op.create_table(
        "signatures",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("phase", sa.Text(collation="C"), nullable=True),
        sa.Column("labels", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.Column("category", sa.Text(collation="C"), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("signatures_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("signatures_pkey")),
        sa.UniqueConstraint("project_id", "content_hash", name=op.f("signatures_project_id_content_hash_key")),
    )
    op.create_index(
        "episodes_failed_idx",
        "episodes",
        ["project_id", "policy_id", "task_id", "domain", "started_at"],
        unique=False,
        postgresql_where=sa.text("outcome = 'failure'"),
    )
    op.create_index(
        "episodes_pair_idx",
        "episodes",
        ["project_id", "pair"],
        unique=False,
        postgresql_where=sa.text("pair IS NOT NULL"),
    )
    op.create_index(
        "episodes_sim_idx",
        "episodes",
        ["project_id", "policy_id", "task_id", "started_at"],
        unique=False,
        postgresql_where=sa.text("domain = 'sim'"),
    )
    op.drop_index(DEPLOYMENTS, table_name="episodes")
    op.create_index(
        DEPLOYMENTS,
        "episodes",
        ["project_id", "deployment_id", "started_at"],
        postgresql_where=sa.text("deployment_id IS NOT NULL"),
    )
    op.execute("DELETE FROM rollup_counts")
    op.execute("DELETE FROM work")
    op.execute(DUE_AGAIN)


def downgrade() -> None:
    op.drop_index(DEPLOYMENTS, table_name="episodes")
    op.create_index(DEPLOYMENTS, "episodes", ["project_id", "deployment_id", "started_at"])
    op.drop_index("episodes_sim_idx", table_name="episodes", postgresql_where=sa.text("domain = 'sim'"))
    op.drop_index("episodes_pair_idx", table_name="episodes", postgresql_where=sa.text("pair IS NOT NULL"))
    op.drop_index("episodes_failed_idx", table_name="episodes", postgresql_where=sa.text("outcome = 'failure'"))
    op.drop_table("signatures")
    op.drop_table("rollup_values")
    op.drop_table("rollup_sessions")
    op.drop_table("rollup_failures")
    op.drop_table("rollup_contracts")
    op.drop_table("rollup_cells")
    op.drop_table("pooled_conditions")
    op.drop_table("cells")
