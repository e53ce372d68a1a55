"""Real outcomes by day, robot and site, in a table of their own.

A new table, filled from the cells, which say the same in hundreds of rows a day.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
KEY = ("project_id", "domain", "policy_id", "task_id", "source_id", "bucket_at", "robot_id", "site_id")


def upgrade() -> None:
    op.create_table(
        "rollup_places",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("domain", WORD, nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("bucket_at", TIME, nullable=False),
        sa.Column("robot_id", sa.Integer(), nullable=False),
        sa.Column("site_id", sa.Integer(), nullable=False),
        sa.Column("successes", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("aborted", sa.BigInteger(), nullable=False),
        sa.Column("abandoned", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*KEY, name=op.f("rollup_places_pkey")),
    )
    op.execute(
        """
        INSERT INTO rollup_places
        SELECT r.project_id, r.domain, r.policy_id, r.task_id, r.source_id, r.bucket_at, coalesce(c.robot_id, 0),
               coalesce(c.site_id, 0), sum(r.successes), sum(r.failures), sum(r.aborted), sum(r.abandoned)
        FROM rollup_cells r JOIN cells c ON c.project_id = r.project_id AND c.id = r.cell_id
        WHERE r.domain = 'real' AND r.tier = 'day' GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
        HAVING sum(r.successes) <> 0 OR sum(r.failures) <> 0 OR sum(r.aborted) <> 0 OR sum(r.abandoned) <> 0
        """
    )


def downgrade() -> None:
    op.drop_table("rollup_places")
