"""Runs the migrations on the connection of `registry.repository.connection`, inside its transaction."""

from alembic import context

from registry.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
