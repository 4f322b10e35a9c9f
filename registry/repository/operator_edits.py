"""The edits of operators other than an apply, each one transaction."""

from collections.abc import Callable

from registry import operations
from registry.edited import Edit
from registry.errors import ProductPaused
from registry.model import Applied, Snapshot
from registry.pauses import last_pause
from registry.repository.board_store import history
from registry.repository.connection import Database
from registry.repository.read import read
from registry.repository.write import lock, sign, write


class OperatorEdits:
    """The part of the registry's doorway for operators. `who`, `why`: for the history."""

    _database: Database

    def pause(self, product: str | None, *, who: str, why: str) -> Applied:
        """From its next batch on the job publishes nothing of the product; for None it reads no batches. Raises NoProduct."""
        return self._operate(lambda stored: operations.pause(stored, product, paused=True), who, why)

    def resume(self, product: str | None, *, who: str, why: str) -> Applied:
        """Ends a pause. Raises NoProduct."""
        return self._operate(lambda stored: operations.pause(stored, product, paused=False), who, why)

    def pause_topic(self, topic: str, *, paused: bool, who: str, why: str) -> Applied:
        """From its next batch on the job leaves the records of a topic in Kafka, or goes on with them. Raises NoTopic."""
        return self._operate(lambda stored: operations.pause_topic(stored, topic, paused=paused), who, why)

    def republish(self, product: str, *, who: str, why: str) -> Applied:
        """The same definition waits as the next version, which publishes every document again. Raises NoProduct."""
        return self._operate(lambda stored: operations.republish(stored, product), who, why)

    def remove(self, product: str, *, tombstones: bool, who: str, why: str) -> Applied:
        """Removes a product, live and waiting, and the joins that nobody else uses. With `tombstones` a live product stays until
        the job has replaced all its documents by tombstones.

        Raises:
            NoProduct: there is none of this name.
            ProductPaused: it is to publish tombstones, and is paused; the error names the pause.
        """
        return self._operate(lambda stored: operations.remove(stored, product, tombstones=tombstones), who, why)

    def retire(self, entity: str, slot: int, *, who: str, why: str) -> Applied:
        """Gives up an assignment, whose slot the job then frees.

        Raises:
            NoAssignment: the slot is free.
            SlotUsed: joins of products use it.
            RegistryRefused: a living job has not applied the last step of the assignment yet.
        """
        return self._operate(lambda stored: operations.retire(stored, entity, slot), who, why)

    def move(self, entity: str, slot: int, target: int, *, who: str, why: str) -> Applied:
        """Moves the columns of a slot to a free one. The job fills that, then moves the joins, and frees the former slot.

        Raises:
            NoAssignment: the slot is free.
            NoMove: it does not serve, its columns move already, or the other slot is not free.
        """
        return self._operate(lambda stored: operations.move(stored, entity, slot, target), who, why)

    def add_slots(self, slots: int, *, who: str, why: str) -> Applied:
        """Raises the number of slots to this, once the table has their indexes. Raises NoMoreSlots."""
        return self._operate(lambda stored: operations.add_slots(stored, slots), who, why)

    def _operate(self, make: Callable[[Snapshot], Edit], who: str, why: str) -> Applied:
        with self._database.transaction() as connection:
            lock(connection)
            sign(connection, who, why)
            try:
                change = make(read(connection))
            except ProductPaused as error:
                raise ProductPaused(error.name, last_pause(history(connection, None), error.name)) from None
            return Applied(version=write(connection, change), changes=change.changes)
