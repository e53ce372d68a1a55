"""Rollouts and decisions.

New tables. The checks of `events` and `deliveries` are renewed for a further word, which reads both once.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0032"
down_revision = "0030"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
JSONB = postgresql.JSONB()
WORD = sa.Text(collation="C")
NOW = sa.text("now()")
STAGES = "('offline', 'shadow', 'supervised', 'full')"
STATES = "('go', 'fallback', 'stop')"
EVENT_KINDS = ("release", "calibration", "simulator", "site", "mitigation", "other")
ACTIONS = ("trigger", "acknowledge", "resolve", "test", "confirm")


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("from_stage", WORD, nullable=False),
        sa.Column("to_stage", WORD, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("who", WORD, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("is_override", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("at", TIME, server_default=NOW, nullable=False),
        sa.Column("packet", postgresql.JSON(), nullable=False),
        sa.Column("packet_hash", WORD, nullable=False),
        sa.Column("previous_hash", WORD, nullable=True),
        sa.CheckConstraint(
            "kind IN ('promote', 'hold', 'rollback', 'stop', 'resume', 'drill')", name=op.f("decisions_kind_check")
        ),
        sa.CheckConstraint(f"from_stage IN {STAGES}", name=op.f("decisions_from_stage_check")),
        sa.CheckConstraint(f"to_stage IN {STAGES}", name=op.f("decisions_to_stage_check")),
        sa.CheckConstraint(f"state IN {STATES}", name=op.f("decisions_state_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("decisions_project_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("decisions_project_id_deployment_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("decisions_pkey")),
    )
    op.create_index(
        op.f("decisions_project_id_deployment_id_id_idx"), "decisions", ["project_id", "deployment_id", "id"]
    )
    op.execute("""
        CREATE FUNCTION refuse_change_of_decision() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'decisions are never changed or deleted'; END $$;
        CREATE TRIGGER decisions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON decisions
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_decision();
    """)
    op.create_table(
        "rollouts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("stage", WORD, nullable=False),
        sa.Column("entered_at", TIME, server_default=NOW, nullable=False),
        sa.Column("state", WORD, server_default=sa.text("'go'"), nullable=False),
        sa.Column("policy_name", WORD, nullable=False),
        sa.Column("policy_version", WORD, nullable=False),
        sa.Column("fallback_name", WORD, nullable=True),
        sa.Column("fallback_version", WORD, nullable=True),
        sa.Column("decided_at", TIME, server_default=NOW, nullable=False),
        sa.Column("decision_id", sa.Integer(), nullable=True),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("plan", JSONB, nullable=True),
        sa.Column("frozen_at", TIME, nullable=True),
        sa.Column("criteria", JSONB, server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("gate", JSONB, nullable=True),
        sa.Column("gate_at", TIME, nullable=True),
        sa.Column("waiting_since", TIME, nullable=True),
        sa.Column("asked_at", TIME, nullable=True),
        sa.Column("drill_at", TIME, nullable=True),
        sa.Column("drill_seconds", sa.Float(), nullable=True),
        sa.CheckConstraint(f"stage IN {STAGES}", name=op.f("rollouts_stage_check")),
        sa.CheckConstraint(f"state IN {STATES}", name=op.f("rollouts_state_check")),
        sa.CheckConstraint(
            "(fallback_name IS NULL) = (fallback_version IS NULL)", name=op.f("rollouts_whole_fallback_check")
        ),
        sa.CheckConstraint("(plan IS NULL) = (frozen_at IS NULL)", name=op.f("rollouts_plan_is_frozen_check")),
        sa.CheckConstraint(
            "drill_seconds > '-Infinity' AND drill_seconds < 'Infinity'",
            name=op.f("rollouts_drill_seconds_finite_check"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rollouts_project_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("rollouts_project_id_deployment_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "decision_id"],
            ["decisions.project_id", "decisions.id"],
            name=op.f("rollouts_project_id_decision_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("rollouts_pkey")),
    )
    _allow("events", "kind", (*EVENT_KINDS, "rollout"))
    _allow("deliveries", "action", (*ACTIONS, "rollout"))


def downgrade() -> None:
    op.execute(
        "DELETE FROM delivery_attempts a USING deliveries d WHERE d.project_id = a.project_id "
        "AND d.id = a.delivery_id AND d.action = 'rollout'"
    )
    op.execute("DELETE FROM deliveries WHERE action = 'rollout'")
    op.execute("DELETE FROM events WHERE kind = 'rollout'")
    _allow("deliveries", "action", ACTIONS)
    _allow("events", "kind", EVENT_KINDS)
    op.drop_table("rollouts")
    op.drop_table("decisions")
    op.execute("DROP FUNCTION refuse_change_of_decision()")


def _allow(table: str, column: str, words: tuple[str, ...]) -> None:
    name = op.f(f"{table}_{column}_check")
    listed = ", ".join(f"'{word}'" for word in words)
    op.drop_constraint(name, table)
    op.create_check_constraint(name, table, f"{column} IN ({listed})")
