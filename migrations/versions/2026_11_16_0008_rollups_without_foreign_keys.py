"""Rollups no longer refer to their project by a foreign key.

They are made of episodes alone, under a lock on the project, and the check of each new row cost a quarter of its
insertion. Dropping a constraint takes a short lock and reads nothing; going back reads the tables once.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLES = ("rollup_cells", "rollup_contracts", "rollup_failures", "rollup_sessions", "rollup_values")


def upgrade() -> None:
    for table in TABLES:
        op.drop_constraint(op.f(f"{table}_project_id_fkey"), table, type_="foreignkey")


def downgrade() -> None:
    for table in TABLES:
        op.create_foreign_key(op.f(f"{table}_project_id_fkey"), table, "projects", ["project_id"], ["id"])
