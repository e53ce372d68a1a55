"""Episodes that repeat another one under a new id.

A new table, empty: what was sent before is not looked through.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "repeated_episodes",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("episode_id", sa.Text(collation="C"), nullable=False),
        sa.Column("first_id", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=True),
        sa.Column("simulator_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("repeated_episodes_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "episode_id", name=op.f("repeated_episodes_pkey")),
    )
    op.create_index(
        op.f("repeated_episodes_project_id_policy_id_deployment_id_idx"),
        "repeated_episodes",
        ["project_id", "policy_id", "deployment_id"],
    )


def downgrade() -> None:
    op.drop_table("repeated_episodes")
