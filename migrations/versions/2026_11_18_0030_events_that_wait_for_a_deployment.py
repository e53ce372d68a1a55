"""Events that wait for a deployment.

A nullable column: nothing is rewritten, and the lock is held for a moment.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", sa.Column("awaited", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("events", "awaited")
