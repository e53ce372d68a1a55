"""The present of deployments.

A new table; the worker fills it from the newest episodes of each deployment within its first rounds.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.create_table(
        "presents",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("since", TIME, nullable=True),
        sa.Column("version_since", TIME, nullable=True),
        sa.Column("body", postgresql.JSONB(), nullable=False),
        sa.Column("computed_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("presents_project_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("presents_project_id_deployment_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("presents_pkey")),
    )
    op.create_index(
        "alerts_changes_idx",
        "alerts",
        ["project_id", "deployment_id"],
        postgresql_where=sa.text("changed_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("alerts_changes_idx", table_name="alerts")
    op.drop_table("presents")
