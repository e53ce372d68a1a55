"""Owners, told reasons and ages of incidents.

New columns without a default to compute and one new table. Open incidents are filled in; resolved ones keep NULL
and are read as having changed when they opened.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
NOW = sa.text("now()")


def upgrade() -> None:
    op.add_column("alerts", sa.Column("changed_at", TIME, nullable=True))
    op.add_column("incidents", sa.Column("changed_at", TIME, nullable=True))
    op.add_column("incidents", sa.Column("owner", WORD, nullable=True))
    op.add_column(
        "incidents",
        sa.Column("told_reasons", postgresql.ARRAY(WORD), server_default=sa.text("'{}'"), nullable=False),
    )
    op.create_table(
        "incident_history",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("at", TIME, server_default=NOW, nullable=False),
        sa.Column("actor", WORD, nullable=False),
        sa.Column("action", WORD, nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("incident_history_project_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id", "incident_id"],
            ["incidents.project_id", "incidents.id"],
            name=op.f("incident_history_project_id_incident_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("incident_history_pkey")),
    )
    op.create_index(
        op.f("incident_history_project_id_incident_id_id_idx"),
        "incident_history",
        ["project_id", "incident_id", "id"],
    )
    op.execute("UPDATE incidents SET owner = acknowledged_by, changed_at = opened_at WHERE state <> 'resolved'")
    # Whoever was told of an open incident was told of all its reasons that stood then.
    op.execute(
        """
        UPDATE incidents i SET told_reasons = r.reasons FROM (
            SELECT a.project_id, a.incident_id, array_agg(DISTINCT CASE
                WHEN a.kind = 'no_data' THEN 'silence' WHEN a.kind = 'safety' THEN 'safety'
                WHEN a.kind = 'stage_gate' THEN 'gate' WHEN a.series LIKE 'signal:%' THEN 'signals'
                ELSE 'performance' END) AS reasons
            FROM alerts a WHERE a.incident_id IS NOT NULL GROUP BY a.project_id, a.incident_id
        ) r
        WHERE r.project_id = i.project_id AND r.incident_id = i.id
          AND i.state <> 'resolved' AND i.paged_at IS NOT NULL
        """
    )


def downgrade() -> None:
    op.drop_table("incident_history")
    op.drop_column("incidents", "told_reasons")
    op.drop_column("incidents", "owner")
    op.drop_column("incidents", "changed_at")
    op.drop_column("alerts", "changed_at")
