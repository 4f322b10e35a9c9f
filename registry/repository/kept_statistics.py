"""The statistics of the state that the registry keeps: one set, the last one."""

from collections.abc import Collection

from registry.repository import statistics_store as store
from registry.repository.connection import Database
from registry.state_statistics import Statistics


class KeptStatistics:
    """The last statistics of the state; each method is one transaction, and no edit: the version stays."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> Statistics | None:
        """The last statistics; None before the first."""
        with self._database.reading() as connection:
            return store.read(connection)

    def keep(self, taken: Statistics) -> None:
        """Replaces the last statistics."""
        with self._database.transaction() as connection:
            store.keep(connection, taken)

    def forget(self, values: Collection[str]) -> int:
        """Takes these encoded join keys out of the statistics. Returns how many joins had one of them."""
        with self._database.transaction() as connection:
            return store.forget(connection, values)
