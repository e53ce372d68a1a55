"""Incidents, detectors and the queue of the watch; alerts by rule name, deliveries by incident.

The alerting tables were not used before, so nothing is moved and nothing waits.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
NOW, FALSE, EMPTY = sa.text("now()"), sa.text("false"), sa.text("'{}'::jsonb")
OPEN = sa.text("state <> 'resolved'")


def of_project(table):
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f(f"{table}_project_id_fkey"))


def of_deployment(table):
    return sa.ForeignKeyConstraint(
        ["project_id", "deployment_id"],
        ["deployments.project_id", "deployments.id"],
        name=op.f(f"{table}_project_id_deployment_id_fkey"),
    )


def upgrade() -> None:
    op.add_column("channels", sa.Column("routing", postgresql.JSONB(), server_default=EMPTY, nullable=False))
    _create_incidents()
    _alter_alerts()
    op.add_column("alert_transitions", sa.Column("input", WORD, server_default=sa.text("''"), nullable=False))
    _alter_deliveries()
    _create_watch()


def _create_incidents() -> None:
    op.create_table(
        "incidents",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("severity", WORD, nullable=False),
        sa.Column("opened_at", TIME, server_default=NOW, nullable=False),
        sa.Column("paged_at", TIME, nullable=True),
        sa.Column("paged_severity", WORD, nullable=True),
        sa.Column("page_at", TIME, nullable=True),
        sa.Column("acknowledged_at", TIME, nullable=True),
        sa.Column("acknowledged_by", WORD, nullable=True),
        sa.Column("resolved_at", TIME, nullable=True),
        sa.Column("content", postgresql.JSONB(), server_default=EMPTY, nullable=False),
        sa.CheckConstraint("state IN ('firing', 'acknowledged', 'resolved')", name=op.f("incidents_state_check")),
        sa.CheckConstraint("severity IN ('info', 'warning', 'critical')", name=op.f("incidents_severity_check")),
        of_deployment("incidents"),
        of_project("incidents"),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("incidents_pkey")),
    )
    op.create_index(
        "incidents_one_open_per_deployment",
        "incidents",
        ["project_id", "deployment_id"],
        unique=True,
        postgresql_where=OPEN,
    )


def _alter_alerts() -> None:
    op.drop_index("alerts_one_open_per_series", "alerts", postgresql_where=OPEN)
    op.drop_constraint(op.f("alerts_project_id_rule_id_fkey"), "alerts", type_="foreignkey")
    op.drop_column("alerts", "rule_id")
    op.add_column("alerts", sa.Column("rule", WORD, nullable=False))
    op.add_column("alerts", sa.Column("kind", WORD, nullable=False))
    op.add_column("alerts", sa.Column("deployment_id", sa.Integer(), nullable=False))
    op.add_column("alerts", sa.Column("incident_id", sa.Integer(), nullable=True))
    op.add_column("alerts", sa.Column("before_no_data", WORD, nullable=True))
    for name in ("dry_run", "regressed", "escalating"):
        op.add_column("alerts", sa.Column(name, sa.Boolean(), server_default=FALSE, nullable=False))
    op.add_column("alerts", sa.Column("acknowledged_at", TIME, nullable=True))
    op.add_column("alerts", sa.Column("acknowledged_by", WORD, nullable=True))
    op.create_foreign_key(
        op.f("alerts_project_id_deployment_id_fkey"),
        "alerts",
        "deployments",
        ["project_id", "deployment_id"],
        ["project_id", "id"],
    )
    op.create_foreign_key(
        op.f("alerts_project_id_incident_id_fkey"),
        "alerts",
        "incidents",
        ["project_id", "incident_id"],
        ["project_id", "id"],
    )
    op.create_index(
        "alerts_one_open_per_series",
        "alerts",
        ["project_id", "deployment_id", "rule", "series"],
        unique=True,
        postgresql_where=OPEN,
    )
    op.create_index(op.f("alerts_project_id_incident_id_idx"), "alerts", ["project_id", "incident_id"])


def _alter_deliveries() -> None:
    op.drop_index(op.f("deliveries_project_id_alert_id_channel_id_id_idx"), "deliveries")
    op.drop_constraint(op.f("deliveries_project_id_alert_id_fkey"), "deliveries", type_="foreignkey")
    op.drop_column("deliveries", "alert_id")
    op.add_column("deliveries", sa.Column("incident_id", sa.Integer(), nullable=True))
    op.add_column("deliveries", sa.Column("reason", WORD, server_default=sa.text("'change'"), nullable=False))
    op.add_column("deliveries", sa.Column("give_up_at", TIME, nullable=True))
    op.create_check_constraint(
        op.f("deliveries_action_check"), "deliveries", "action IN ('trigger', 'acknowledge', 'resolve', 'test')"
    )
    op.create_foreign_key(
        op.f("deliveries_project_id_incident_id_fkey"),
        "deliveries",
        "incidents",
        ["project_id", "incident_id"],
        ["project_id", "id"],
    )
    op.create_index(
        op.f("deliveries_project_id_incident_id_channel_id_id_idx"),
        "deliveries",
        ["project_id", "incident_id", "channel_id", "id"],
    )
    op.add_column(
        "delivery_attempts", sa.Column("outcome", WORD, server_default=sa.text("'sent'"), nullable=False)
    )
    op.add_column("delivery_attempts", sa.Column("took_ms", sa.Integer(), nullable=True))


def _create_watch() -> None:
    op.create_table(
        "watch_due",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("episode_ids", postgresql.ARRAY(WORD), nullable=False),
        sa.Column("accepted_at", TIME, nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        of_project("watch_due"),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("watch_due_pkey")),
    )
    op.create_table(
        "watches",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("episodes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("late", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("newest_started_at", TIME, nullable=True),
        sa.Column("newest_received_at", TIME, nullable=True),
        sa.Column("silent", sa.Boolean(), server_default=FALSE, nullable=False),
        sa.Column("updated_at", TIME, server_default=NOW, nullable=False),
        of_deployment("watches"),
        of_project("watches"),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("watches_pkey")),
    )
    op.create_table(
        "detectors",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("rule", WORD, nullable=False),
        sa.Column("series", WORD, nullable=False),
        sa.Column("params", postgresql.JSONB(), nullable=False),
        sa.Column("state", postgresql.JSONB(), nullable=False),
        sa.Column("restart", sa.Boolean(), server_default=FALSE, nullable=False),
        sa.Column("updated_at", TIME, server_default=NOW, nullable=False),
        of_project("detectors"),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", "rule", "series", name=op.f("detectors_pkey")),
    )
    op.create_table(
        "presence",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("robot", WORD, nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("heard_at", TIME, nullable=False),
        sa.Column("live_episodes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("longest_gap_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("silent", sa.Boolean(), server_default=FALSE, nullable=False),
        of_project("presence"),
        sa.PrimaryKeyConstraint("project_id", "robot", name=op.f("presence_pkey")),
    )


def downgrade() -> None:
    for table in ("presence", "detectors", "watches", "watch_due"):
        op.drop_table(table)
    op.drop_column("delivery_attempts", "took_ms")
    op.drop_column("delivery_attempts", "outcome")
    # What deliveries and alerts referred to is gone, so they cannot stay.
    op.execute("DELETE FROM delivery_attempts; DELETE FROM deliveries; DELETE FROM alert_transitions")
    op.execute("DELETE FROM alerts; DELETE FROM rules")
    op.drop_index(op.f("deliveries_project_id_incident_id_channel_id_id_idx"), "deliveries")
    op.drop_constraint(op.f("deliveries_action_check"), "deliveries", type_="check")
    for name in ("give_up_at", "reason", "incident_id"):
        op.drop_column("deliveries", name)
    op.add_column("deliveries", sa.Column("alert_id", sa.Integer(), nullable=False))
    op.create_foreign_key(
        op.f("deliveries_project_id_alert_id_fkey"),
        "deliveries",
        "alerts",
        ["project_id", "alert_id"],
        ["project_id", "id"],
    )
    op.create_index(
        op.f("deliveries_project_id_alert_id_channel_id_id_idx"),
        "deliveries",
        ["project_id", "alert_id", "channel_id", "id"],
    )
    op.drop_column("alert_transitions", "input")
    op.drop_index(op.f("alerts_project_id_incident_id_idx"), "alerts")
    op.drop_index("alerts_one_open_per_series", "alerts", postgresql_where=OPEN)
    for name in (
        *("acknowledged_by", "acknowledged_at", "escalating", "regressed", "dry_run", "before_no_data"),
        *("incident_id", "deployment_id", "kind", "rule"),
    ):
        op.drop_column("alerts", name)
    op.add_column("alerts", sa.Column("rule_id", sa.Integer(), nullable=False))
    op.create_foreign_key(
        op.f("alerts_project_id_rule_id_fkey"), "alerts", "rules", ["project_id", "rule_id"], ["project_id", "id"]
    )
    op.create_index(
        "alerts_one_open_per_series",
        "alerts",
        ["project_id", "rule_id", "series"],
        unique=True,
        postgresql_where=OPEN,
    )
    op.drop_table("incidents")
    op.drop_column("channels", "routing")
