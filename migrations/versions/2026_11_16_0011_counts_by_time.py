"""Counts of a whole project by time, whatever the deployment.

An index: the fleet's last hours and its windows were looked up deployment by deployment.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        op.f("rollup_counts_project_id_tier_bucket_at_idx"), "rollup_counts", ["project_id", "tier", "bucket_at"]
    )


def downgrade() -> None:
    op.drop_index(op.f("rollup_counts_project_id_tier_bucket_at_idx"), table_name="rollup_counts")
