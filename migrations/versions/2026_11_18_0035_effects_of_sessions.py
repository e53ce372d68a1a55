"""How many episodes of each side are worth one, beside presents.

Two columns that may be empty; the worker fills them as it makes the leading categories anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("presents", sa.Column("sim_effect", sa.Double(), nullable=True))
    op.add_column("presents", sa.Column("real_effect", sa.Double(), nullable=True))
    # Those that are stored are made anew with them.
    op.execute("UPDATE presents SET lead_version = NULL, led_at = NULL")


def downgrade() -> None:
    op.drop_column("presents", "real_effect")
    op.drop_column("presents", "sim_effect")
