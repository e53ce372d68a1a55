"""How many new names each key brought on a day.

A new table, empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "new_names",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("field", sa.Text(collation="C"), nullable=False),
        sa.Column("names", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("refused", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("new_names_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "key_id", "day", "field", name=op.f("new_names_pkey")),
    )


def downgrade() -> None:
    op.drop_table("new_names")
