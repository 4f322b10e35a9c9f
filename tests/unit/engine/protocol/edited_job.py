"""A job whose definitions change from run to run, over one store."""

import json
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.values.record import Record


class EditedJob:
    """A job whose later runs have other definitions. `rows`: what it reads first, by topic."""

    def __init__(self, plan: Plan, rows: dict[str, Any] | None = None) -> None:
        self.trial, self.runs = Trial(plan=plan, settings=Settings()), 1
        for topic, row in (rows or {}).items():
            self.send(topic, row)

    def goes_on(self, plan: Plan) -> None:
        self.runs += 1
        before = self.trial
        self.trial = Trial(
            plan=plan, settings=Settings(), other_store=before.store, run=self.runs, committed=before.committed
        )

    def send(self, topic: str, row: Any) -> None:
        offset = self.trial.committed.offsets.get((topic, 0, 0), (0, 0))[1]
        self.trial.batch([Record(topic=topic, partition=0, offset=offset, key=None, value=json.dumps(row).encode())])
        self.trial.finish()

    def document(self) -> Any:
        return json.loads(self.trial.published.messages[-1].value or b"null")
