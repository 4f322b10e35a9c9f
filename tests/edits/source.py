"""The source tables of `tests.edits.soak`: few rows, so that changes collide, and rows move between parents."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Event
from time import time
from typing import Any

from processor.job.kafka.outbox import KafkaOutbox
from processor.values import canonical_json
from processor.values.record import Message
from tests.simulator.check import KEYS

USERS, REPOS, STARS, LABELS = 60, 30, 400, 60
NAMES = 30
"""User names: a name belongs to two users on average, and a user has several stars."""
DELETES = 0.08
"""The share of changes that delete a row."""
SHARES = {"user": 3, "repo": 2, "star": 10, "label": 2}


def _name(r: Random) -> str | None:
    return None if r.random() < 0.1 else f"name{r.randrange(NAMES)}"


def _repo(r: Random) -> dict[str, Any]:
    return {"repo_owner": None if r.random() < 0.1 else "o", "repo_name": f"repo{r.randrange(REPOS)}"}


DRAW: dict[str, Callable[[Random], dict[str, Any]]] = {
    "user": lambda r: {
        "email": f"user{(n := r.randrange(USERS))}",
        "id": n,
        "username": _name(r),
        "bio": r.choice("01"),
    },
    "repo": lambda r: {
        "owner": "o",
        "name": f"repo{r.randrange(REPOS)}",
        "stars": r.randrange(9),
        "about": r.choice("01"),
    },
    "star": lambda r: {
        "id": r.randrange(STARS),
        "username": _name(r),
        **_repo(r),
        "at": r.randrange(5),
        "note": _name(r),
    },
    "label": lambda r: {"id": r.randrange(LABELS), **_repo(r), "text": f"text{r.randrange(20)}"},
}


@dataclass(slots=True, kw_only=True)
class EditedSource:
    """The tables, and the producer of their changes. `n`: the changes so far; each row says which one it comes from."""

    outbox: KafkaOutbox
    chance: Random
    tables: dict[str, dict[bytes, dict[str, Any]]] = field(default_factory=lambda: {name: {} for name in KEYS})
    n: int = 0
    stopped: Event = field(default_factory=Event)

    def fill(self) -> None:
        """Sends rows enough that most keys exist."""
        for entity, share in (("user", USERS), ("repo", REPOS), ("star", STARS), ("label", LABELS)):
            for _ in range(2 * share):
                self.change(entity, deletes=0)
        self.outbox.flush()

    def change(self, entity: str, deletes: float = DELETES) -> None:
        """Draws a row, and puts it in place of the row of its key, or deletes that row."""
        self.n += 1
        row = {**DRAW[entity](self.chance), "n": self.n}
        key = canonical_json.encode({column: row[column] for column in KEYS[entity]})
        gone = self.chance.random() < deletes and key in self.tables[entity]
        if gone:
            del self.tables[entity][key]
        else:
            self.tables[entity][key] = row
        value = None if gone else canonical_json.encode(row)
        self.outbox.send(Message(topic=entity, key=key, value=value, headers=()))

    def run(self, rate: float) -> None:
        """Sends changes at a steady rate until `stopped` is set."""
        entities, shares = list(SHARES), list(SHARES.values())
        began, first = time(), self.n
        while not self.stopped.wait(max(0.0, began + (self.n - first) / rate - time())):
            self.change(self.chance.choices(entities, shares)[0])
        self.outbox.flush()
