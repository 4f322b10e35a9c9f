"""The landings that the registry knows: each target that holds documents of a product, until a person removes it."""

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert

from registry.model import KnownLanding
from registry.repository.connection import Database
from registry.tables import landings


class LandingNotes:
    """The landings; each method is one transaction, and no edit: the version stays."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, id_: str, *, product: str, topic: str, place: str) -> None:
        """Notes that a process of this landing runs now."""
        given = {"product": product, "topic": topic, "place": place}
        seen = insert(landings).values(id=id_, **given)
        with self._database.transaction() as connection:
            connection.execute(seen.on_conflict_do_update(index_elements=["id"], set_={**given, "seen_at": func.now()}))

    def all(self) -> tuple[KnownLanding, ...]:
        """The landings, in the order in which they were made. A registry that an earlier release migrated knows none."""
        with self._database.reading() as connection:
            if connection.scalar(text("SELECT to_regclass('landings') IS NULL")):
                return ()
            found = connection.execute(select(landings).order_by(landings.c.made_at, landings.c.id)).mappings()
            return tuple(KnownLanding(**row) for row in found)

    def remove(self, id_: str) -> bool:
        """Forgets a landing. Returns False where there is none of this id."""
        with self._database.transaction() as connection:
            return connection.execute(delete(landings).where(landings.c.id == id_)).rowcount > 0
