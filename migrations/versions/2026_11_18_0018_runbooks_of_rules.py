"""Runbooks of rules.

One new column without a default to compute.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rules", sa.Column("runbook_url", sa.Text(collation="C"), nullable=True))


def downgrade() -> None:
    op.drop_column("rules", "runbook_url")
