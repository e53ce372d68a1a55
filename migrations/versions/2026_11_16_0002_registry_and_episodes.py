"""What episodes refer to, the episodes, their former versions and the quarantine.

The first schema; nothing to lock.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "episode_revisions",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "received_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("duration_s", sa.Double(), nullable=True),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("clock_skew_s", sa.Double(), nullable=True),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=True),
        sa.Column("simulator_id", sa.Integer(), nullable=True),
        sa.Column("robot_id", sa.Integer(), nullable=True),
        sa.Column("site_id", sa.Integer(), nullable=True),
        sa.Column("condition_set_id", sa.Integer(), nullable=True),
        sa.Column("number_names_id", sa.Integer(), nullable=True),
        sa.Column("signal_names_id", sa.Integer(), nullable=True),
        sa.Column("metric_names_id", sa.Integer(), nullable=True),
        sa.Column("contract_id", sa.Integer(), nullable=True),
        sa.Column("violations", sa.Integer(), nullable=True),
        sa.Column("interventions", sa.Integer(), nullable=True),
        sa.Column("overrides", sa.Integer(), nullable=True),
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("outcome", sa.Text(collation="C"), nullable=False),
        sa.Column("stage", sa.Text(collation="C"), nullable=True),
        sa.Column("session", sa.Text(collation="C"), nullable=True),
        sa.Column("pair", sa.Text(collation="C"), nullable=True),
        sa.Column("failure_phase", sa.Text(collation="C"), nullable=True),
        sa.Column("failure_labels", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("failure_category", sa.Text(collation="C"), nullable=True),
        sa.Column("failure_note", sa.Text(), nullable=True),
        sa.Column("numbers", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("signals", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("metrics", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("embedding", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("links", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("provenance", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("ended_by", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "ended_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("actor", sa.Text(collation="C"), nullable=False),
        sa.CheckConstraint(
            "NOT (embedding && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episode_revisions_embedding_finite_check"),
        ),
        sa.CheckConstraint(
            "NOT (metrics && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episode_revisions_metrics_finite_check"),
        ),
        sa.CheckConstraint(
            "NOT (numbers && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episode_revisions_numbers_finite_check"),
        ),
        sa.CheckConstraint(
            "NOT (signals && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episode_revisions_signals_finite_check"),
        ),
        sa.CheckConstraint(
            "clock_skew_s > '-Infinity' AND clock_skew_s < 'Infinity'",
            name=op.f("episode_revisions_clock_skew_s_finite_check"),
        ),
        sa.CheckConstraint(
            "domain = 'real' OR simulator_id IS NOT NULL",
            name=op.f("episode_revisions_simulator_of_sim_check"),
        ),
        sa.CheckConstraint(
            "domain = 'sim' OR deployment_id IS NOT NULL",
            name=op.f("episode_revisions_deployment_of_real_check"),
        ),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("episode_revisions_domain_check")),
        sa.CheckConstraint(
            "duration_s > '-Infinity' AND duration_s < 'Infinity'",
            name=op.f("episode_revisions_duration_s_finite_check"),
        ),
        sa.CheckConstraint(
            "ended_by IN ('correction', 'deletion')", name=op.f("episode_revisions_ended_by_check")
        ),
        sa.CheckConstraint(
            "outcome IN ('success', 'failure', 'aborted', 'abandoned')",
            name=op.f("episode_revisions_outcome_check"),
        ),
        sa.CheckConstraint(
            "reward > '-Infinity' AND reward < 'Infinity'", name=op.f("episode_revisions_reward_finite_check")
        ),
        sa.CheckConstraint(
            "stage IN ('offline', 'shadow', 'supervised', 'full')", name=op.f("episode_revisions_stage_check")
        ),
        sa.CheckConstraint("duration_s >= 0", name=op.f("episode_revisions_duration_not_negative_check")),
        sa.CheckConstraint("interventions >= 0", name=op.f("episode_revisions_interventions_not_negative_check")),
        sa.CheckConstraint("overrides >= 0", name=op.f("episode_revisions_overrides_not_negative_check")),
        sa.CheckConstraint("violations >= 0", name=op.f("episode_revisions_violations_not_negative_check")),
        sa.PrimaryKeyConstraint("project_id", "id", "revision", name=op.f("episode_revisions_pkey")),
    )
    op.create_table(
        "episodes",
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "received_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("duration_s", sa.Double(), nullable=True),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("clock_skew_s", sa.Double(), nullable=True),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=True),
        sa.Column("simulator_id", sa.Integer(), nullable=True),
        sa.Column("robot_id", sa.Integer(), nullable=True),
        sa.Column("site_id", sa.Integer(), nullable=True),
        sa.Column("condition_set_id", sa.Integer(), nullable=True),
        sa.Column("number_names_id", sa.Integer(), nullable=True),
        sa.Column("signal_names_id", sa.Integer(), nullable=True),
        sa.Column("metric_names_id", sa.Integer(), nullable=True),
        sa.Column("contract_id", sa.Integer(), nullable=True),
        sa.Column("violations", sa.Integer(), nullable=True),
        sa.Column("interventions", sa.Integer(), nullable=True),
        sa.Column("overrides", sa.Integer(), nullable=True),
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("outcome", sa.Text(collation="C"), nullable=False),
        sa.Column("stage", sa.Text(collation="C"), nullable=True),
        sa.Column("session", sa.Text(collation="C"), nullable=True),
        sa.Column("pair", sa.Text(collation="C"), nullable=True),
        sa.Column("failure_phase", sa.Text(collation="C"), nullable=True),
        sa.Column("failure_labels", postgresql.ARRAY(sa.Text(collation="C")), nullable=True),
        sa.Column("failure_category", sa.Text(collation="C"), nullable=True),
        sa.Column("failure_note", sa.Text(), nullable=True),
        sa.Column("numbers", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("signals", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("metrics", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("embedding", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("links", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("provenance", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "NOT (embedding && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episodes_embedding_finite_check"),
        ),
        sa.CheckConstraint(
            "NOT (metrics && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episodes_metrics_finite_check"),
        ),
        sa.CheckConstraint(
            "NOT (numbers && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episodes_numbers_finite_check"),
        ),
        sa.CheckConstraint(
            "NOT (signals && '{NaN,Infinity,-Infinity}'::double precision[])",
            name=op.f("episodes_signals_finite_check"),
        ),
        sa.CheckConstraint(
            "clock_skew_s > '-Infinity' AND clock_skew_s < 'Infinity'",
            name=op.f("episodes_clock_skew_s_finite_check"),
        ),
        sa.CheckConstraint(
            "domain = 'real' OR simulator_id IS NOT NULL", name=op.f("episodes_simulator_of_sim_check")
        ),
        sa.CheckConstraint(
            "domain = 'sim' OR deployment_id IS NOT NULL", name=op.f("episodes_deployment_of_real_check")
        ),
        sa.CheckConstraint("domain IN ('sim', 'real')", name=op.f("episodes_domain_check")),
        sa.CheckConstraint(
            "duration_s > '-Infinity' AND duration_s < 'Infinity'",
            name=op.f("episodes_duration_s_finite_check"),
        ),
        sa.CheckConstraint(
            "outcome IN ('success', 'failure', 'aborted', 'abandoned')", name=op.f("episodes_outcome_check")
        ),
        sa.CheckConstraint(
            "reward > '-Infinity' AND reward < 'Infinity'", name=op.f("episodes_reward_finite_check")
        ),
        sa.CheckConstraint(
            "stage IN ('offline', 'shadow', 'supervised', 'full')", name=op.f("episodes_stage_check")
        ),
        sa.CheckConstraint("duration_s >= 0", name=op.f("episodes_duration_not_negative_check")),
        sa.CheckConstraint("interventions >= 0", name=op.f("episodes_interventions_not_negative_check")),
        sa.CheckConstraint("overrides >= 0", name=op.f("episodes_overrides_not_negative_check")),
        sa.CheckConstraint("violations >= 0", name=op.f("episodes_violations_not_negative_check")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("episodes_pkey")),
    )
    op.create_index(
        op.f("episodes_project_id_deployment_id_started_at_idx"),
        "episodes",
        ["project_id", "deployment_id", "started_at"],
        unique=False,
    )
    op.create_index(
        op.f("episodes_project_id_started_at_id_idx"),
        "episodes",
        ["project_id", "started_at", "id"],
        unique=False,
    )
    op.create_table(
        "condition_sets",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("levels", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("condition_sets_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("condition_sets_pkey")),
        sa.UniqueConstraint("project_id", "content_hash", name=op.f("condition_sets_project_id_content_hash_key")),
    )
    op.create_table(
        "contracts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("contracts_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("contracts_pkey")),
        sa.UniqueConstraint("project_id", "content_hash", name=op.f("contracts_project_id_content_hash_key")),
    )
    op.create_table(
        "name_sets",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column("names", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.CheckConstraint("kind IN ('condition', 'signal', 'metric')", name=op.f("name_sets_kind_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("name_sets_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("name_sets_pkey")),
        sa.UniqueConstraint("project_id", "content_hash", name=op.f("name_sets_project_id_content_hash_key")),
    )
    op.create_table(
        "policies",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("version", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("policies_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("policies_pkey")),
        sa.UniqueConstraint("project_id", "name", "version", name=op.f("policies_project_id_name_version_key")),
    )
    op.create_table(
        "rejected_records",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column(
            "received_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("key_prefix", sa.Text(collation="C"), nullable=False),
        sa.Column("code", sa.Text(collation="C"), nullable=False),
        sa.Column("errors", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("rejected_records_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("rejected_records_pkey")),
    )
    op.create_index(
        op.f("rejected_records_project_id_received_at_idx"),
        "rejected_records",
        ["project_id", "received_at"],
        unique=False,
    )
    op.create_table(
        "robots",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("robots_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("robots_pkey")),
        sa.UniqueConstraint("project_id", "name", name=op.f("robots_project_id_name_key")),
    )
    op.create_table(
        "simulators",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("version", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("simulators_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("simulators_pkey")),
        sa.UniqueConstraint("project_id", "name", "version", name=op.f("simulators_project_id_name_version_key")),
    )
    op.create_table(
        "sites",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("sites_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("sites_pkey")),
        sa.UniqueConstraint("project_id", "name", name=op.f("sites_project_id_name_key")),
    )
    op.create_table(
        "tasks",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("tasks_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("tasks_pkey")),
        sa.UniqueConstraint("project_id", "name", name=op.f("tasks_project_id_name_key")),
    )
    op.create_table(
        "deployments",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("slug", sa.Text(collation="C"), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("site_id", sa.Integer(), nullable=True),
        sa.Column("stage", sa.Text(collation="C"), nullable=True),
        sa.Column("described_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint(
            "stage IN ('offline', 'shadow', 'supervised', 'full')", name=op.f("deployments_stage_check")
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "policy_id"],
            ["policies.project_id", "policies.id"],
            name=op.f("deployments_project_id_policy_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "site_id"],
            ["sites.project_id", "sites.id"],
            name=op.f("deployments_project_id_site_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "task_id"],
            ["tasks.project_id", "tasks.id"],
            name=op.f("deployments_project_id_task_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("deployments_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("deployments_pkey")),
        sa.UniqueConstraint("project_id", "slug", name=op.f("deployments_project_id_slug_key")),
    )
    op.create_table(
        "baselines",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("simulator_id", sa.Integer(), nullable=False),
        sa.Column("pinned_by", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "pinned_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=op.f("baselines_project_id_deployment_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "simulator_id"],
            ["simulators.project_id", "simulators.id"],
            name=op.f("baselines_project_id_simulator_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("baselines_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("baselines_pkey")),
    )


def downgrade() -> None:
    op.drop_table("baselines")
    op.drop_table("deployments")
    op.drop_table("tasks")
    op.drop_table("sites")
    op.drop_table("simulators")
    op.drop_table("robots")
    op.drop_index(op.f("rejected_records_project_id_received_at_idx"), table_name="rejected_records")
    op.drop_table("rejected_records")
    op.drop_table("policies")
    op.drop_table("name_sets")
    op.drop_table("contracts")
    op.drop_table("condition_sets")
    op.drop_index(op.f("episodes_project_id_started_at_id_idx"), table_name="episodes")
    op.drop_index(op.f("episodes_project_id_deployment_id_started_at_idx"), table_name="episodes")
    op.drop_table("episodes")
    op.drop_table("episode_revisions")
