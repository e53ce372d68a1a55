"""Progress of labelling.

One index over episodes that have a category. Building it reads the table once and holds up writers meanwhile;
senders retry, so nothing is lost.
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "episodes_labelled_idx",
        "episodes",
        ["project_id", "deployment_id"],
        postgresql_where=sa.text("failure_category IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("episodes_labelled_idx", table_name="episodes")
