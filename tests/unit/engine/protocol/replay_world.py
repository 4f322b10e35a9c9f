"""A job without Spark for tests of replays: its definitions refuse what those of the replay take."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.replays import ReplayReport
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record, Rejected
from statestore.items import Row, read_row

ENTITIES: dict[str, dict[str, Any]] = {
    "user": {
        "key": ["id"],
        "truncate": "delete",
        "columns": {"id": "int", "name": "string", "bio": "string", "age": "int"},
    },
    "star": {"key": ["id"], "columns": {"id": "int", "who": "string"}},
}
PROFILE = {
    "product": "profile",
    "root": "user",
    "fields": ["id", "name", "bio", "age"],
    "embed": {"stars": {"many": "star", "on": {"who": "name"}, "value": "id"}},
}
ADA = b'{"id":1}'


def plan_with(**age: str) -> Plan:
    entities = {**ENTITIES, "user": {**ENTITIES["user"], "columns": {**ENTITIES["user"]["columns"], **age}}}
    return plan_alone(load({"entities.yaml": json.dumps(entities), "profile.yaml": json.dumps(PROFILE)}), 3)


NARROW, WIDE = plan_with(), plan_with(age="json")


class World:
    """A job without Spark. Its definitions refuse a text as `age`; `replay` works with definitions that accept any `age`."""

    def __init__(self) -> None:
        self.trial = Trial(plan=NARROW, settings=Settings())
        self.offset = 0

    def user(self, **row: Any) -> Record:
        return self._record("user", row)

    def star(self, **row: Any) -> Record:
        return self._record("star", row)

    def gone(self, entity: str = "user") -> Record:
        return self._record(entity, None)

    def emptied(self, entity: str = "user") -> Record:
        return replace(self._record(entity, {}), key=None, value=b'{"op": "t", "source": {}}')

    def _record(self, topic: str, row: Any) -> Record:
        self.offset += 1
        value = None if row is None else json.dumps({"id": 1, **row}).encode()
        return Record(topic=topic, partition=0, offset=self.offset, key=ADA, value=value)

    def batch(self, *records: Record) -> None:
        self.trial.batch(records)

    def replay(self, *records: Record, kept: float = 0.0) -> list[ReplayReport]:
        letters = [DeadLetter(rejected=Rejected(record=r, reason=""), kept_since=kept) for r in records]
        self.trial.driver.adopt(WIDE)
        return self.trial.driver.replay(letters)

    def row(self, entity: str = "user") -> Row:
        key = WIDE.entities[entity].key("1")
        return read_row(self.trial.store.get([key])[key])

    def document(self) -> Any:
        """The last document of user 1, after all changes are settled."""
        self.trial.finish()
        last = {m.key: m.value for m in self.trial.published.messages}
        value = last.get(ADA)
        return None if value is None else json.loads(value)


def outcomes(reports: Iterable[ReplayReport]) -> list[str]:
    return [report.outcome for report in reports]
