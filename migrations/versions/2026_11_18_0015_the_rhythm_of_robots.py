"""The rhythm of robots and deployments, and when the service itself was away.

`presence` has a row a robot: it is changed at once. What was learned of robots before is one number, which the new
rule has no use for; they are listened to anew and page nobody for a week.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
WORDS = "silence IN ('died', 'absent', 'unknown', 'normal', 'fault')"


def upgrade() -> None:
    op.add_column("presence", sa.Column("rhythm", postgresql.JSONB(), nullable=True))
    op.add_column("presence", sa.Column("silence", WORD, nullable=True))
    op.execute("UPDATE presence SET silence = 'died' WHERE silent")
    op.create_check_constraint(op.f("presence_silence_check"), "presence", WORDS)
    op.drop_column("presence", "silent")
    op.drop_column("presence", "longest_gap_s")
    op.create_table(
        "deployment_presence",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.Integer(), nullable=False),
        sa.Column("heard_at", TIME, nullable=False),
        sa.Column("live_episodes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("rhythm", postgresql.JSONB(), nullable=True),
        sa.Column("silence", WORD, nullable=True),
        sa.CheckConstraint(WORDS, name=op.f("deployment_presence_silence_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("deployment_presence_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "deployment_id", name=op.f("deployment_presence_pkey")),
    )
    op.create_table(
        "service_spans",
        sa.Column("part", WORD, nullable=False),
        sa.Column("alive_from", TIME, nullable=False),
        sa.Column("alive_until", TIME, nullable=False),
        sa.PrimaryKeyConstraint("part", "alive_from", name=op.f("service_spans_pkey")),
    )


def downgrade() -> None:
    op.drop_table("service_spans")
    op.drop_table("deployment_presence")
    op.add_column("presence", sa.Column("longest_gap_s", sa.Float(), server_default=sa.text("0"), nullable=False))
    op.add_column("presence", sa.Column("silent", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.execute("UPDATE presence SET silent = true WHERE silence IS NOT NULL")
    op.drop_constraint(op.f("presence_silence_check"), "presence", type_="check")
    for name in ("silence", "rhythm"):
        op.drop_column("presence", name)
