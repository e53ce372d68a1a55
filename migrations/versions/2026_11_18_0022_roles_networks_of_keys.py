"""Networks of keys.

Locks `api_keys` for an instant: a column with a constant default.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "api_keys", sa.Column("networks", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False)
    )


def downgrade() -> None:
    op.drop_column("api_keys", "networks")
