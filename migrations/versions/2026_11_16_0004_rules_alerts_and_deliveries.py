"""Rules, alerts, the outbox, silences and events.

The first schema; nothing to lock.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "config",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("secret", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("disabled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('webhook', 'pagerduty', 'slack', 'email', 'alertmanager', 'apprise')",
            name=op.f("channels_kind_check"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("channels_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("channels_pkey")),
    )
    op.create_index(op.f("channels_project_id_name_idx"), "channels", ["project_id", "name"], unique=True)
    op.create_table(
        "rules",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "params",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "match",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("severity", sa.Text(collation="C"), nullable=False),
        sa.Column("channel_ids", postgresql.ARRAY(sa.Integer()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("dry_run", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("disabled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("severity IN ('info', 'warning', 'critical')", name=op.f("rules_severity_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rules_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("rules_pkey")),
    )
    op.create_index(op.f("rules_project_id_name_idx"), "rules", ["project_id", "name"], unique=True)
    op.create_table(
        "silences",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("match", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("owner", sa.Text(collation="C"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("starts_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("ends_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint("ends_at > starts_at", name=op.f("silences_ends_after_start_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("silences_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("silences_pkey")),
    )
    op.create_index(op.f("silences_project_id_ends_at_idx"), "silences", ["project_id", "ends_at"], unique=False)
    op.create_table(
        "alerts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("rule_id", sa.Integer(), nullable=False),
        sa.Column("series", sa.Text(collation="C"), nullable=False),
        sa.Column("state", sa.Text(collation="C"), nullable=False),
        sa.Column("severity", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "evidence",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "opened_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column(
            "state_since",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("resolved_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("severity IN ('info', 'warning', 'critical')", name=op.f("alerts_severity_check")),
        sa.CheckConstraint(
            "state IN ('pending', 'firing', 'acknowledged', 'no_data', 'resolved')",
            name=op.f("alerts_state_check"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "rule_id"],
            ["rules.project_id", "rules.id"],
            name=op.f("alerts_project_id_rule_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("alerts_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("alerts_pkey")),
    )
    op.create_index(
        "alerts_one_open_per_series",
        "alerts",
        ["project_id", "rule_id", "series"],
        unique=True,
        postgresql_where=sa.text("state <> 'resolved'"),
    )
    op.create_index(op.f("alerts_project_id_opened_at_idx"), "alerts", ["project_id", "opened_at"], unique=False)
    op.create_table(
        "alert_transitions",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("alert_id", sa.Integer(), nullable=False),
        sa.Column("at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("from_state", sa.Text(collation="C"), nullable=True),
        sa.Column("to_state", sa.Text(collation="C"), nullable=False),
        sa.Column("actor", sa.Text(collation="C"), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "to_state IN ('pending', 'firing', 'acknowledged', 'no_data', 'resolved')",
            name=op.f("alert_transitions_to_state_check"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "alert_id"],
            ["alerts.project_id", "alerts.id"],
            name=op.f("alert_transitions_project_id_alert_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("alert_transitions_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("alert_transitions_pkey")),
    )
    op.create_index(
        op.f("alert_transitions_project_id_alert_id_id_idx"),
        "alert_transitions",
        ["project_id", "alert_id", "id"],
        unique=False,
    )
    op.create_table(
        "deliveries",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("alert_id", sa.Integer(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("action", sa.Text(collation="C"), nullable=False),
        sa.Column("dedup_key", sa.Text(collation="C"), nullable=False),
        sa.Column("content", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.Text(collation="C"), server_default=sa.text("'due'"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("due_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("sent_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('due', 'sent', 'superseded', 'dead')", name=op.f("deliveries_state_check")),
        sa.ForeignKeyConstraint(
            ["project_id", "alert_id"],
            ["alerts.project_id", "alerts.id"],
            name=op.f("deliveries_project_id_alert_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "channel_id"],
            ["channels.project_id", "channels.id"],
            name=op.f("deliveries_project_id_channel_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("deliveries_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("deliveries_pkey")),
    )
    op.create_index(
        op.f("deliveries_due_at_idx"),
        "deliveries",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("state = 'due'"),
    )
    op.create_index(
        op.f("deliveries_project_id_alert_id_channel_id_id_idx"),
        "deliveries",
        ["project_id", "alert_id", "channel_id", "id"],
        unique=False,
    )
    op.create_table(
        "events",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column("at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=True),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint(
            "kind IN ('release', 'calibration', 'simulator', 'site', 'mitigation', 'other')",
            name=op.f("events_kind_check"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("events_project_id_deployment_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("events_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("events_pkey")),
    )
    op.create_index(op.f("events_project_id_at_idx"), "events", ["project_id", "at"], unique=False)
    op.create_table(
        "delivery_attempts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("delivery_id", sa.Integer(), nullable=False),
        sa.Column("at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "delivery_id"],
            ["deliveries.project_id", "deliveries.id"],
            name=op.f("delivery_attempts_project_id_delivery_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("delivery_attempts_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("delivery_attempts_pkey")),
    )
    op.create_index(
        op.f("delivery_attempts_project_id_delivery_id_id_idx"),
        "delivery_attempts",
        ["project_id", "delivery_id", "id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(op.f("delivery_attempts_project_id_delivery_id_id_idx"), table_name="delivery_attempts")
    op.drop_table("delivery_attempts")
    op.drop_index(op.f("events_project_id_at_idx"), table_name="events")
    op.drop_table("events")
    op.drop_index(op.f("deliveries_project_id_alert_id_channel_id_id_idx"), table_name="deliveries")
    op.drop_index(
        op.f("deliveries_due_at_idx"), table_name="deliveries", postgresql_where=sa.text("state = 'due'")
    )
    op.drop_table("deliveries")
    op.drop_index(op.f("alert_transitions_project_id_alert_id_id_idx"), table_name="alert_transitions")
    op.drop_table("alert_transitions")
    op.drop_index(op.f("alerts_project_id_opened_at_idx"), table_name="alerts")
    op.drop_index(
        "alerts_one_open_per_series", table_name="alerts", postgresql_where=sa.text("state <> 'resolved'")
    )
    op.drop_table("alerts")
    op.drop_index(op.f("silences_project_id_ends_at_idx"), table_name="silences")
    op.drop_table("silences")
    op.drop_index(op.f("rules_project_id_name_idx"), table_name="rules")
    op.drop_table("rules")
    op.drop_index(op.f("channels_project_id_name_idx"), table_name="channels")
    op.drop_table("channels")
