"""Leading categories beside presents.

Three columns that may be empty; the worker fills them within its first rounds.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0025"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.add_column("presents", sa.Column("lead", postgresql.JSONB(), nullable=True))
    op.add_column("presents", sa.Column("lead_version", sa.Text(collation="C"), nullable=True))
    op.add_column("presents", sa.Column("led_at", TIME, nullable=True))


def downgrade() -> None:
    for name in ("led_at", "lead_version", "lead"):
        op.drop_column("presents", name)
