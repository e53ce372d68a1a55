"""Shadow episodes on a side of their own.

Adds the field `shadow`. Real episodes of stage `shadow` were driven by something else than their policy: they get
the domain `shadow`, by which nothing that is asked of the real side sees them. Each is corrected the way a person
would: what it was goes to the revisions, and work rows take it out of the real numbers and add it to those of its
own side. Workers do that after the start, and `gapwatch verify` proves it, before and after. What detectors have
seen of these deployments is gone through again in order.

`episodes`, its revisions and the rollups are read for the wider checks, and rows of stage `shadow` are written
once; writers wait meanwhile, and senders retry.

Also makes the tables of forecasts, of who knows the permit and of drills, and has Postgres tell
of every decision.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

ROLLUPS = (
    *("rollup_counts", "rollup_cells", "rollup_failures", "rollup_values", "rollup_sessions", "rollup_contracts"),
)
EPISODES = ("episodes", "episode_revisions")
IDS_AT_ONCE = 1000


def upgrade() -> None:
    for table in EPISODES:
        op.add_column(table, sa.Column("shadow", postgresql.JSONB()))
    _check_domain("'sim', 'real', 'shadow'", "domain <> 'sim' OR simulator_id IS NOT NULL")
    _move("domain = 'real' AND stage = 'shadow'", "shadow", "rollout.shadow_apart", ((0, -1), (1, 1)))
    op.create_index(
        "episodes_shadow_idx",
        "episodes",
        ["project_id", "deployment_id", "started_at"],
        postgresql_where=sa.text("domain = 'shadow'"),
    )
    _make_tables()
    op.execute("""
        CREATE FUNCTION tell_of_permit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            IF TG_OP = 'INSERT' OR NEW.revision <> OLD.revision THEN
                PERFORM pg_notify('gapwatch_permit', NEW.project_id || '/' || NEW.deployment_id);
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER rollouts_tell_of_permit AFTER INSERT OR UPDATE ON rollouts
        FOR EACH ROW EXECUTE FUNCTION tell_of_permit();
    """)


def downgrade() -> None:
    op.execute("DROP TRIGGER rollouts_tell_of_permit ON rollouts")
    op.execute("DROP FUNCTION tell_of_permit()")
    for table in ("drills", "permit_clients", "shadow_forecasts"):
        op.drop_table(table)
    op.drop_index("episodes_shadow_idx", table_name="episodes")
    # The counts of the side go as a whole, so its episodes are only added; all work must have been folded before.
    _move("domain = 'shadow'", "real", "rollout.shadow_together", ((1, 1),))
    op.execute("UPDATE episode_revisions SET domain = 'real' WHERE domain = 'shadow'")
    for table in (*ROLLUPS, "rollup_places"):
        op.execute(f"DELETE FROM {table} WHERE domain = 'shadow'")  # noqa: S608 - nothing of a request is in any of these
    _check_domain("'sim', 'real'", "domain = 'real' OR simulator_id IS NOT NULL")
    for table in EPISODES:
        op.drop_column(table, "shadow")


def _make_tables() -> None:
    def of_deployment(table: str) -> sa.ForeignKeyConstraint:
        return sa.ForeignKeyConstraint(
            ["project_id", "deployment_id"],
            ["deployments.project_id", "deployments.id"],
            name=f"{table}_project_id_deployment_id_fkey",
        )

    def of_project(table: str) -> sa.ForeignKeyConstraint:
        return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"{table}_project_id_fkey")

    time = sa.TIMESTAMP(timezone=True)
    op.create_table(
        "shadow_forecasts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("policy_id", sa.Integer(), nullable=False),
        sa.Column("made_at", time, server_default=sa.func.now(), nullable=False),
        sa.Column("body", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", "policy_id", name="shadow_forecasts_pkey"),
        of_project("shadow_forecasts"),
        of_deployment("shadow_forecasts"),
        sa.ForeignKeyConstraint(
            ["project_id", "policy_id"],
            ["policies.project_id", "policies.id"],
            name="shadow_forecasts_project_id_policy_id_fkey",
        ),
    )
    op.create_table(
        "permit_clients",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("client", sa.Text(collation="C"), nullable=False),
        sa.Column("asked_at", time, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("knew_at", time, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", "client", name="permit_clients_pkey"),
        of_project("permit_clients"),
        of_deployment("permit_clients"),
    )
    op.create_table(
        "drills",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("at", time, server_default=sa.func.now(), nullable=False),
        sa.Column("clients", sa.Integer(), nullable=False),
        sa.Column("knew", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("p95_seconds", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("project_id", "id", name="drills_pkey"),
        sa.CheckConstraint(
            "seconds > '-Infinity' AND seconds < 'Infinity'", name=op.f("drills_seconds_finite_check")
        ),
        sa.CheckConstraint(
            "p95_seconds > '-Infinity' AND p95_seconds < 'Infinity'", name=op.f("drills_p95_seconds_finite_check")
        ),
        of_project("drills"),
        of_deployment("drills"),
    )
    op.create_index("drills_project_id_deployment_id_at_idx", "drills", ["project_id", "deployment_id", "at"])


def _check_domain(domains: str, simulator_of_sim: str) -> None:
    for table in (*EPISODES, *ROLLUPS):
        _check(table, "domain", f"domain IN ({domains})")
    for table in EPISODES:
        _check(table, "simulator_of_sim", simulator_of_sim)


def _check(table: str, name: str, condition: str) -> None:
    constraint = f"{table}_{name}_check"
    op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {constraint}")
    op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {constraint} CHECK ({condition})")


def _move(which: str, domain: str, action: str, work: tuple[tuple[int, int], ...]) -> None:
    """Correct the domain of episodes, and leave the work that moves them in the numbers.

    `work`: of how much later a revision, with which sign.
    """
    signs = ", ".join(map(str, work))
    connection = op.get_bind()
    columns = ", ".join(column["name"] for column in sa.inspect(connection).get_columns("episodes"))
    op.execute(
        f"CREATE TEMP TABLE moved AS SELECT project_id, id, revision, deployment_id FROM episodes WHERE {which}"  # noqa: S608
    )
    op.execute(
        f"INSERT INTO episode_revisions ({columns}, ended_by, actor)"  # noqa: S608
        f" SELECT {columns}, 'correction', 'migration' FROM episodes WHERE {which}"
    )
    op.execute(f"UPDATE episodes SET domain = '{domain}', revision = revision + 1 WHERE {which}")  # noqa: S608
    op.execute(f"""
        INSERT INTO work (project_id, kind, episode_ids, revision, sign)
        SELECT project_id, 'fold', array_agg(id), revision + s.later, s.sign FROM (
            SELECT *, (row_number() OVER (PARTITION BY project_id, revision ORDER BY id)) / {IDS_AT_ONCE} AS part
            FROM moved) m
        CROSS JOIN (VALUES {signs}) AS s (later, sign)
        GROUP BY project_id, revision, part, s.later, s.sign ORDER BY project_id, revision, part, s.sign
    """)  # noqa: S608
    op.execute("""
        INSERT INTO rewatches (project_id, deployment_id, due_at, last_at)
        SELECT DISTINCT project_id, deployment_id, now(), now() FROM moved
        ON CONFLICT (project_id, deployment_id) DO UPDATE SET due_at = now()
    """)
    op.execute(f"""
        INSERT INTO audit_entries (project_id, actor, action, subject, details)
        SELECT m.project_id, 'migration', '{action}', 'deployment/' || d.slug,
               jsonb_build_object('episodes', count(*))
        FROM moved m JOIN deployments d ON d.project_id = m.project_id AND d.id = m.deployment_id
        GROUP BY m.project_id, d.slug ORDER BY 1, 4
    """)  # noqa: S608
    op.execute("DROP TABLE moved")
