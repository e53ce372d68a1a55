"""What was told by kind, what was sent again, and one secret.

Two new tables and columns without a default to compute. Open incidents that people were told of get a row for each
kind of reason they knew; they were told at one severity.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
NOW = sa.text("now()")
SEVERITIES = "('info', 'warning', 'critical')"


def upgrade() -> None:
    op.create_table(
        "notified_reasons",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("incident_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("severity", WORD, nullable=False),
        sa.Column("standing", WORD, nullable=False),
        sa.Column("at", TIME, server_default=NOW, nullable=False),
        sa.Column("over_at", TIME, nullable=True),
        sa.CheckConstraint(
            "kind IN ('silence', 'safety', 'performance', 'gate', 'signals')",
            name=op.f("notified_reasons_kind_check"),
        ),
        sa.CheckConstraint(f"severity IN {SEVERITIES}", name=op.f("notified_reasons_severity_check")),
        sa.CheckConstraint(f"standing IN {SEVERITIES}", name=op.f("notified_reasons_standing_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("notified_reasons_project_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id", "incident_id"],
            ["incidents.project_id", "incidents.id"],
            name=op.f("notified_reasons_project_id_incident_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("notified_reasons_pkey")),
    )
    op.create_index(
        op.f("notified_reasons_project_id_deployment_id_kind_severity_at_idx"),
        "notified_reasons",
        ["project_id", "deployment_id", "kind", "severity", "at"],
    )
    op.create_index(
        op.f("notified_reasons_project_id_incident_id_id_idx"),
        "notified_reasons",
        ["project_id", "incident_id", "id"],
    )
    op.execute(
        """
        INSERT INTO notified_reasons (project_id, incident_id, deployment_id, number, kind, severity, standing, at)
        SELECT project_id, id, deployment_id, 1, unnest(told_reasons), paged_severity, paged_severity, paged_at
        FROM incidents
        WHERE state <> 'resolved' AND paged_at IS NOT NULL AND paged_severity IS NOT NULL
        """
    )
    op.create_table(
        "server_secret",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("set_at", TIME, server_default=NOW, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("server_secret_only_one_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("server_secret_pkey")),
    )
    op.add_column("channels", sa.Column("resent_at", TIME, nullable=True))
    op.add_column("channels", sa.Column("resend_tried_at", TIME, nullable=True))
    op.add_column(
        "channels", sa.Column("resend_failures", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.add_column("channels", sa.Column("resend_answer", sa.Text(), nullable=True))


def downgrade() -> None:
    for column in ("resend_answer", "resend_failures", "resend_tried_at", "resent_at"):
        op.drop_column("channels", column)
    op.drop_table("server_secret")
    op.drop_table("notified_reasons")
