"""Mail addresses confirm that they want alerts; a delivery may ask one.

A new table. The check of `deliveries` is made anew, which reads the outbox once. Addresses that are in use stay in
use: an upgrade must not cut anybody off from their pages.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
WORD = sa.Text(collation="C")
NOW = sa.text("now()")
CHECK = "deliveries_action_check"


def upgrade() -> None:
    op.create_table(
        "mail_addresses",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("address", WORD, nullable=False),
        sa.Column("asked_at", TIME, nullable=True),
        sa.Column("confirmed_at", TIME, nullable=True),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("mail_addresses_project_id_fkey")),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("mail_addresses_pkey")),
    )
    op.create_index(
        op.f("mail_addresses_project_id_address_idx"), "mail_addresses", ["project_id", "address"], unique=True
    )
    op.execute(
        """
        INSERT INTO mail_addresses (project_id, address, confirmed_at)
        SELECT DISTINCT c.project_id, a.address, now()
        FROM channels c CROSS JOIN LATERAL jsonb_array_elements_text(c.config -> 'to') a (address)
        WHERE c.kind = 'email' AND c.disabled_at IS NULL
        """
    )
    op.drop_constraint(op.f(CHECK), "deliveries", type_="check")
    op.create_check_constraint(
        op.f(CHECK), "deliveries", "action IN ('trigger', 'acknowledge', 'resolve', 'test', 'confirm')"
    )


def downgrade() -> None:
    op.execute(
        "DELETE FROM delivery_attempts t USING deliveries d WHERE d.project_id = t.project_id"
        " AND d.id = t.delivery_id AND d.action = 'confirm'"
    )
    op.execute("DELETE FROM deliveries WHERE action = 'confirm'")
    op.drop_constraint(op.f(CHECK), "deliveries", type_="check")
    op.create_check_constraint(
        op.f(CHECK), "deliveries", "action IN ('trigger', 'acknowledge', 'resolve', 'test')"
    )
    op.drop_table("mail_addresses")
