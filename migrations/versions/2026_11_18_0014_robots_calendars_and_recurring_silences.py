"""Robots, calendars and recurring silences.

Three new tables, and new columns without a value to compute. Loosening `silences.ends_at` and adding its checks
locks that table, which has a few rows, for a moment.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
NOW = sa.text("now()")
STATUSES = "'working', 'parked', 'repair', 'retired'"


def upgrade() -> None:
    op.create_table(
        "robot_statuses",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("robot", WORD, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("since", TIME, server_default=NOW, nullable=False),
        sa.Column("until", TIME, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("actor", WORD, nullable=False),
        sa.Column("ends_when_heard", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(f"status IN ({STATUSES})", name=op.f("robot_statuses_status_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("robot_statuses_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "robot", name=op.f("robot_statuses_pkey")),
    )
    op.create_table(
        "robot_history",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("robot", WORD, nullable=False),
        sa.Column("at", TIME, server_default=NOW, nullable=False),
        sa.Column("actor", WORD, nullable=False),
        sa.Column("change", WORD, nullable=False),
        sa.Column("until", TIME, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(f"change IN ({STATUSES}, 'moved')", name=op.f("robot_history_change_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("robot_history_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("robot_history_pkey")),
    )
    op.create_index(op.f("robot_history_project_id_robot_id_idx"), "robot_history", ["project_id", "robot", "id"])
    op.create_table(
        "work_calendars",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("calendar", postgresql.JSONB(), nullable=False),
        sa.Column("changed_by", WORD, nullable=False),
        sa.Column("changed_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("work_calendars_project_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("work_calendars_project_id_deployment_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("work_calendars_pkey")),
    )
    op.add_column("silences", sa.Column("kind", WORD, server_default=sa.text("'silence'"), nullable=False))
    op.add_column("silences", sa.Column("recurrence", postgresql.JSONB(), nullable=True))
    op.alter_column("silences", "ends_at", nullable=True)
    op.create_check_constraint(op.f("silences_kind_check"), "silences", "kind IN ('silence', 'maintenance')")
    op.create_check_constraint(
        op.f("silences_ends_or_recurs_check"), "silences", "ends_at IS NOT NULL OR recurrence IS NOT NULL"
    )
    op.add_column("presence", sa.Column("spool_oldest_at", TIME, nullable=True))
    op.add_column("presence", sa.Column("spool_told_at", TIME, nullable=True))


def downgrade() -> None:
    op.drop_column("presence", "spool_told_at")
    op.drop_column("presence", "spool_oldest_at")
    # A release that knows no series would take one for a silence that lasts all the time.
    op.execute("DELETE FROM silences WHERE recurrence IS NOT NULL")
    op.drop_constraint(op.f("silences_ends_or_recurs_check"), "silences")
    op.drop_constraint(op.f("silences_kind_check"), "silences")
    op.alter_column("silences", "ends_at", nullable=False)
    op.drop_column("silences", "recurrence")
    op.drop_column("silences", "kind")
    op.drop_table("work_calendars")
    op.drop_table("robot_history")
    op.drop_table("robot_statuses")
