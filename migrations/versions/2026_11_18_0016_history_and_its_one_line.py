"""History that is taken in order again, the one line that tells of an import, and deliveries that are begun.

New columns with constant defaults and two new tables: nothing is rewritten and nothing waits.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
NOW, FALSE, ZERO = sa.text("now()"), sa.text("false"), sa.text("0")


def of_project(table):
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f(f"{table}_project_id_fkey"))


def upgrade() -> None:
    op.add_column("alerts", sa.Column("from_history", sa.Boolean(), server_default=FALSE, nullable=False))
    op.add_column("incidents", sa.Column("from_history", sa.Boolean(), server_default=FALSE, nullable=False))
    op.add_column("deliveries", sa.Column("begun_at", TIME, nullable=True))
    op.add_column("incidents", sa.Column("backfill_id", sa.Integer(), nullable=True))
    op.create_table(
        "rewatches",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("is_import", sa.Boolean(), server_default=FALSE, nullable=False),
        sa.Column("episodes", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("live_robots", postgresql.ARRAY(WORD), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("last_at", TIME, server_default=NOW, nullable=False),
        sa.Column("last_import_at", TIME, nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("took_s", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("times", sa.Integer(), server_default=ZERO, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("rewatches_project_id_deployment_id_fkey"),
        ),
        of_project("rewatches"),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("rewatches_pkey")),
    )
    op.create_table(
        "backfills",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("began_at", TIME, server_default=NOW, nullable=False),
        sa.Column("last_at", TIME, server_default=NOW, nullable=False),
        sa.Column("episodes", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("closed_at", TIME, nullable=True),
        sa.Column("told_at", TIME, nullable=True),
        sa.Column("over_at", TIME, nullable=True),
        of_project("backfills"),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("backfills_pkey")),
    )
    op.create_index(
        "backfills_one_open_per_project",
        "backfills",
        ["project_id"],
        unique=True,
        postgresql_where=sa.text("closed_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_table("backfills")
    op.drop_table("rewatches")
    op.drop_column("deliveries", "begun_at")
    op.drop_column("incidents", "backfill_id")
    op.drop_column("incidents", "from_history")
    op.drop_column("alerts", "from_history")
