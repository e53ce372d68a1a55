"""Projects, people, keys and the audit trail.

The first schema; nothing to lock.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("slug", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "options",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("projects_pkey")),
        sa.UniqueConstraint("slug", name=op.f("projects_slug_key")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("email", sa.Text(collation="C"), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("disabled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("users_pkey")),
        sa.UniqueConstraint("email", name=op.f("users_email_key")),
    )
    op.create_table(
        "api_keys",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(collation="C"), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scope", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("revoked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_used_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("scope IN ('ingest', 'read', 'admin')", name=op.f("api_keys_scope_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("api_keys_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("api_keys_pkey")),
    )
    op.create_index(op.f("api_keys_prefix_idx"), "api_keys", ["prefix"], unique=True)
    op.create_table(
        "audit_entries",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.Text(collation="C"), nullable=False),
        sa.Column("action", sa.Text(collation="C"), nullable=False),
        sa.Column("subject", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("audit_entries_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("audit_entries_pkey")),
    )
    op.create_index(
        op.f("audit_entries_project_id_subject_at_idx"),
        "audit_entries",
        ["project_id", "subject", "at"],
        unique=False,
    )
    op.execute("""
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit entries are never changed or deleted'; END $$;
        CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
    """)
    op.create_table(
        "browser_sessions",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("csrf_token", sa.Text(), nullable=False),
        sa.Column(
            "created_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("seen_at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("browser_sessions_user_id_fkey")),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("browser_sessions_pkey")),
    )
    op.create_index(op.f("browser_sessions_user_id_idx"), "browser_sessions", ["user_id"], unique=False)
    op.create_table(
        "members",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(collation="C"), nullable=False),
        sa.CheckConstraint("role IN ('viewer', 'engineer', 'admin')", name=op.f("members_role_check")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("members_project_id_fkey")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("members_user_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("members_pkey")),
    )
    op.create_index(op.f("members_user_id_idx"), "members", ["user_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("members_user_id_idx"), table_name="members")
    op.drop_table("members")
    op.drop_index(op.f("browser_sessions_user_id_idx"), table_name="browser_sessions")
    op.drop_table("browser_sessions")
    op.drop_index(op.f("audit_entries_project_id_subject_at_idx"), table_name="audit_entries")
    op.drop_table("audit_entries")
    op.execute("DROP FUNCTION refuse_change()")
    op.drop_index(op.f("api_keys_prefix_idx"), table_name="api_keys")
    op.drop_table("api_keys")
    op.drop_table("users")
    op.drop_table("projects")
