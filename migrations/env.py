"""Runs migrations on the connection that `gapwatch.store.core.migrate` hands over."""

from alembic import context

from gapwatch.store.tables import Base

config = context.config
connection = config.attributes["connection"]

context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    compare_type=True,
    compare_server_default=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
