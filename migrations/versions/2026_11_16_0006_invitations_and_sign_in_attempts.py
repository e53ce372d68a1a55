"""Invitations, the count of failed sign-ins, and the count of folds that open pages ask for.

Three new tables; nothing to lock.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "invitations",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("email", sa.Text(collation="C"), nullable=False),
        sa.Column("role", sa.Text(collation="C"), nullable=False),
        sa.Column("invited_by", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("used_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("role IN ('viewer', 'engineer', 'admin')", name=op.f("invitations_role_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("invitations_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("invitations_pkey")),
    )
    op.create_index(op.f("invitations_token_hash_idx"), "invitations", ["token_hash"], unique=True)
    op.create_table(
        "sign_in_attempts",
        sa.Column("subject", sa.LargeBinary(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("since", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("sign_in_attempts_pkey")),
    )
    op.create_index(op.f("sign_in_attempts_since_idx"), "sign_in_attempts", ["since"], unique=False)
    op.create_table(
        "project_changes",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("folds", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("project_changes_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("project_changes_pkey")),
    )


def downgrade() -> None:
    op.drop_table("project_changes")
    op.drop_table("sign_in_attempts")
    op.drop_table("invitations")
