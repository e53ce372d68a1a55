"""Kinds of the registry.

Check how a kind is spelled and leave it to the registry which kinds there are: a new kind needs no migration.
Locks `channels` and `rules` for as long as reading them takes; both hold a few rows a project.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

SPELLED = "kind ~ '^[a-z][a-z0-9_]{0,39}$'"
# Those of the release before.
CHANNEL_KINDS = "kind IN ('webhook', 'pagerduty', 'slack', 'email', 'alertmanager', 'apprise')"


def upgrade() -> None:
    op.drop_constraint(op.f("channels_kind_check"), "channels")
    op.create_check_constraint(op.f("channels_kind_check"), "channels", SPELLED)
    op.create_check_constraint(op.f("rules_kind_check"), "rules", SPELLED)


def downgrade() -> None:
    op.drop_constraint(op.f("rules_kind_check"), "rules")
    op.drop_constraint(op.f("channels_kind_check"), "channels")
    # Channels of a newer kind stay, and the check holds for what is written from now on.
    op.execute(f"ALTER TABLE channels ADD CONSTRAINT channels_kind_check CHECK ({CHANNEL_KINDS}) NOT VALID")
