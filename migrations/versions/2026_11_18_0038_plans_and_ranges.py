"""Plans of trials, the field that names them, and randomisation ranges.

Adds nullable columns, which is done at once, and two partial indexes that hold no row yet; building them reads
`episodes` once while writers wait, and senders retry. The check of `events` is renewed for a further word.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

EVENT_KINDS = ("release", "calibration", "simulator", "site", "mitigation", "other", "rollout")


def upgrade() -> None:
    for table in ("episodes", "episode_revisions"):
        op.add_column(table, sa.Column("plan", sa.Integer()))
    op.create_index(
        "episodes_plan_idx", "episodes", ["project_id", "plan"], postgresql_where=sa.text("plan IS NOT NULL")
    )
    op.create_index(
        "episodes_plan_session_idx",
        "episodes",
        ["project_id", "session"],
        postgresql_where=sa.text("session LIKE 'plan-%'"),
    )
    time, word = sa.TIMESTAMP(timezone=True), sa.Text(collation="C")
    op.create_table(
        "trial_plans",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("goal", word, nullable=False),
        sa.Column("body", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", time, server_default=sa.func.now(), nullable=False),
        sa.Column("created_by", word, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "id", name="trial_plans_pkey"),
        sa.CheckConstraint(
            "goal IN ('verdict', 'gate', 'cause', 'coverage')", name=op.f("trial_plans_goal_check")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="trial_plans_project_id_fkey"),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name="trial_plans_project_id_deployment_id_fkey",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "policy_id"],
            ["policies.project_id", "policies.id"],
            name="trial_plans_project_id_policy_id_fkey",
        ),
    )
    op.create_index(
        "trial_plans_project_id_deployment_id_id_idx", "trial_plans", ["project_id", "deployment_id", "id"]
    )
    op.create_table(
        "simulator_ranges",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("simulator", word, nullable=False),
        sa.Column("version", word, nullable=False),
        sa.Column("parameters", postgresql.JSONB(), nullable=False),
        sa.Column("updated_at", time, server_default=sa.func.now(), nullable=False),
        sa.Column("updated_by", word, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "simulator", "version", name="simulator_ranges_pkey"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="simulator_ranges_project_id_fkey"),
    )
    _allow_events(*EVENT_KINDS, "system_identification")


def downgrade() -> None:
    op.execute("DELETE FROM events WHERE kind = 'system_identification'")
    _allow_events(*EVENT_KINDS)
    op.drop_table("simulator_ranges")
    op.drop_table("trial_plans")
    op.drop_index("episodes_plan_session_idx", table_name="episodes")
    op.drop_index("episodes_plan_idx", table_name="episodes")
    for table in ("episode_revisions", "episodes"):
        op.drop_column(table, "plan")


def _allow_events(*kinds: str) -> None:
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.execute("ALTER TABLE events DROP CONSTRAINT events_kind_check")
    op.execute(f"ALTER TABLE events ADD CONSTRAINT events_kind_check CHECK (kind IN ({listed}))")
