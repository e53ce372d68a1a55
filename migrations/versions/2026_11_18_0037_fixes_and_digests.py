"""Fixes with what they aim at and cost, and digests in the outbox.

Adds `events.fix`, which only mitigations may have, what a fix closed once its four weeks are over, and lets a
delivery be a digest. Both tables are locked for the moment that nullable columns and a check take; `deliveries` is
read once for its check.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0037"
down_revision = "0035"
branch_labels = None
depends_on = None

ACTIONS = ("trigger", "acknowledge", "resolve", "test", "confirm", "rollout")


def upgrade() -> None:
    op.add_column("events", sa.Column("fix", postgresql.JSONB()))
    op.add_column("events", sa.Column("closure", postgresql.JSONB()))
    op.add_column("events", sa.Column("measured_at", sa.TIMESTAMP(timezone=True)))
    check = "fix IS NULL OR kind = 'mitigation'"
    op.create_check_constraint(op.f("events_fix_of_mitigation_check"), "events", check)
    op.create_index(
        "events_mitigations_idx", "events", ["project_id", "id"], postgresql_where=sa.text("kind = 'mitigation'")
    )
    _allow((*ACTIONS, "digest"))


def downgrade() -> None:
    op.execute("""
        DELETE FROM delivery_attempts a USING deliveries d
        WHERE d.project_id = a.project_id AND d.id = a.delivery_id AND d.action = 'digest'
    """)
    op.execute("DELETE FROM deliveries WHERE action = 'digest'")
    op.execute("UPDATE channels SET routing = routing - 'digest' WHERE routing ? 'digest'")
    _allow(ACTIONS)
    op.drop_index("events_mitigations_idx", table_name="events")
    op.drop_constraint(op.f("events_fix_of_mitigation_check"), "events")
    for column in ("measured_at", "closure", "fix"):
        op.drop_column("events", column)


def _allow(actions: tuple[str, ...]) -> None:
    op.execute("ALTER TABLE deliveries DROP CONSTRAINT deliveries_action_check")
    op.execute(f"ALTER TABLE deliveries ADD CONSTRAINT deliveries_action_check CHECK (action IN {actions})")
