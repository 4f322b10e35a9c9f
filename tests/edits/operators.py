"""The operators of `tests.edits.soak`: each edit comes from outside the job, by `statestore apply` or by plain SQL."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psycopg

from benchmarks.job_process import STATESTORE
from processor.environment.settings.settings import Settings
from registry.model import Assignment, AssignmentState, Snapshot
from registry.repository import Registry
from tests.simulator.edit_shapes import CONTENTS, texts
from tests.simulator.shape_definitions import STARS

KINDS = {
    "apply another content": 8,
    "pause or resume a product": 3,
    "move a slot": 3,
    "retire a slot": 3,
    "publish a product again": 2,
    "retract a product": 2,
    "pause or resume all work": 2,
}
"""How often operators choose each kind."""
PAUSE = (
    "UPDATE products SET paused = {} WHERE name = '{}'",
    "UPDATE waiting_products SET paused = {} WHERE name = '{}'",
)
NEXT_VERSION = "(SELECT version + 1 FROM product_versions WHERE product = '{0}')"
REPUBLISH = (
    f"INSERT INTO waiting_products SELECT name, topic, root, definition, {NEXT_VERSION}, paused FROM products "
    "WHERE name = '{0}'",
    "INSERT INTO waiting_joins SELECT * FROM product_joins WHERE product = '{0}'",
)
RETRACT = (
    "DELETE FROM waiting_products WHERE name = '{0}'",
    f"UPDATE products SET retracted = true, version = {NEXT_VERSION} WHERE name = '{{0}}' AND NOT retracted",
)
MOVE = (
    "INSERT INTO assignments (entity, slot, columns, state) SELECT entity, (SELECT min(slot) FROM slots WHERE slot NOT IN "
    "(SELECT b.slot FROM assignments b WHERE b.entity = a.entity)), columns, 'planned' FROM assignments a "
    "WHERE entity = '{0}' AND slot = {1}"
)


@dataclass(slots=True, kw_only=True)
class Operators:
    """All operators. `done`: edits by kind; `refused`: by kind and reason."""

    settings: Settings
    registry: Registry
    environment: Mapping[str, str]
    directory: Path
    chance: Random
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def apply(self, contents: Mapping[str, int]) -> str:
        """Applies contents of products; returns the reason of a refusal, else nothing."""
        files = {"entities.yaml": STARS["entities.yaml"], **texts(dict(contents))}
        folder = self.directory / "definitions"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, text in files.items():
            (folder / name).write_text(text)
        words = [STATESTORE, "apply", "--definitions", str(folder), "--why", "an operator's choice"]
        ended = subprocess.run(words, env=dict(self.environment), capture_output=True, text=True, check=False)
        return ended.stderr.strip().splitlines()[-1] if ended.returncode else ""

    def by_hand(self, *statements: str) -> str:
        """Edits by SQL in one transaction; returns the reason of a refusal, else nothing."""
        url = self.settings.registry.replace("postgresql+psycopg://", "postgresql://", 1)
        path = f"-c search_path={self.settings.registry_schema}"
        try:
            with psycopg.connect(url, options=path) as connection:
                for statement in ("SELECT edit_by_hand('an operator''s choice')", *statements):
                    connection.execute(statement.encode())
        except psycopg.Error as error:
            return error.diag.message_primary or str(error)
        return ""

    def edit(self) -> None:
        """One edit of a random kind. A pause of all work ends with the next edit. At most one product is paused at a time."""
        stored = self.registry.snapshot()
        kind = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        self.note("pause or resume all work" if stored.paused else kind, stored)

    def note(self, kind: str, stored: Snapshot) -> None:
        """Edits, and counts the edit, or its refusal."""
        reason = self._edit(kind, stored)
        print(f"{kind}{': refused: ' + reason if reason else ''}", file=sys.stderr, flush=True)
        if reason:
            self.refused[kind, re.sub(r"\d+", "N", reason)] += 1
        else:
            self.done[kind] += 1

    def move(self, entity: str) -> None:
        """Moves the first serving slot of an entity."""
        stored = self.registry.snapshot()
        found = [one for one in stored.assignments_of(entity) if one.state is AssignmentState.SERVING]
        reason = self.by_hand(MOVE.format(entity, found[0].slot))
        self.done["move a slot"] += not reason

    def resume_all(self) -> None:
        """Resumes all work and every product, whatever was paused."""
        stored = self.registry.snapshot()
        if stored.paused:
            self.note("pause or resume all work", stored)
        self.by_hand("UPDATE products SET paused = false", "UPDATE waiting_products SET paused = false")

    def _edit(self, kind: str, stored: Snapshot) -> str:
        live = [one.name for one in stored.products]
        name = self.chance.choice(live or sorted(CONTENTS))
        match kind:
            case "apply another content":
                name = self.chance.choice([one for one in sorted(CONTENTS) if one not in live] or sorted(CONTENTS))
                return self.apply({name: self.chance.randrange(len(CONTENTS[name]))})
            case "pause or resume a product":
                paused = [one.name for one in (*stored.products, *stored.waiting) if one.paused]
                return self.by_hand(*(one.format(not paused, *paused[:1] or [name]) for one in PAUSE))
            case "publish a product again":
                return self.by_hand(*(statement.format(name) for statement in REPUBLISH))
            case "retract a product":
                return self.by_hand(*(statement.format(name) for statement in RETRACT))
            case "pause or resume all work":
                return self.by_hand(f"UPDATE work SET paused = {not stored.paused}")
        one = self.chance.choice(self._unused(stored) if kind == "retire a slot" else stored.assignments)
        return self.by_hand(MOVE.format(one.entity, one.slot) if kind == "move a slot" else _retire(one))

    def _unused(self, stored: Snapshot) -> list[Assignment]:
        """The assignments that no join uses; all of them if there are none, so that the registry has to refuse."""
        used = {path for access in stored.joins for path in (access.down, access.up)}
        return [one for one in stored.assignments if one not in used] or list(stored.assignments)


def _retire(one: Assignment) -> str:
    where = f"WHERE entity = '{one.entity}' AND slot = {one.slot}"
    if one.state is AssignmentState.PLANNED:
        return f"DELETE FROM assignments {where}"
    return f"UPDATE assignments SET state = 'retiring' {where}"
