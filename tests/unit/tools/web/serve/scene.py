"""A state in memory with documents, and a reader over it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.web.serve.reader import PlanView, StateReader, StorePool
from processor.values import canonical_json
from processor.values.record import Record
from registry.errors import RegistryUnreachable
from registry.model import JobStatus, Snapshot

ENTITIES = """
user:
  key: [name]
  columns: {name: string, city: string, spent: "decimal(10,2)", more: json}
order:
  key: [user, number]
  columns: {user: string, number: int, status: string}
"""
PRODUCTS = {
    "entities.yaml": ENTITIES,
    "person.yaml": "product: person\nroot: user\nfields: [name, city]\nembed: {orders: {many: order, on: {user: name}}}\n",
    "spending.yaml": "product: spending\nroot: user\nfields: [name, spent, more]\n",
    "orders.yaml": "product: purchase\nroot: order\nfields: [user, number, status]\n",
}


class ServedState:
    """Takes rows as a job does. `away`: the registry does not answer; `jobs`: that report to it."""

    def __init__(self) -> None:
        self.trial = Trial(plan=plan_alone(load(PRODUCTS), slots=20), settings=Settings())
        self.served: Plan = self.trial.plan
        self.away = False
        self.jobs: tuple[JobStatus, ...] = ()
        self._offset = 0

    def takes(self, topic: str, value: dict[str, Any], *, deleted: bool = False) -> None:
        key = canonical_json.encode({name: value[name] for name in self.trial.plan.entities[topic].entity.key})
        body = None if deleted else canonical_json.encode(value)
        self.trial.batch([Record(topic=topic, partition=0, offset=self._offset, epoch=1, key=key, value=body)])
        self._offset += 1

    def snapshot(self) -> Snapshot:
        if self.away:
            raise RegistryUnreachable("the registry at db:5432 does not answer")
        return Snapshot(version=self.served.version, slots=20, entities=(), products=(), assignments=(), joins=())

    def reports(self, report: Any) -> None:
        """The job has reported this a moment ago."""
        (at, seconds) = (datetime(2026, 1, 1, tzinfo=UTC), 1.0)
        known = {
            "job": "one",
            "owner": "a host",
            "alive": True,
            "generation": 1,
            "applied_version": 1,
            "renewed_at": at,
        }
        self.jobs = (JobStatus(**cast(Any, known), report=report, report_age=seconds),)

    def edits(self, **products: str) -> None:
        """Puts other definitions into the registry."""
        self.served = replace(plan_alone(load(PRODUCTS | products), slots=20), version=self.served.version + 1)

    def works_by(self, products: dict[str, str]) -> None:
        """Puts other definitions into the registry, and the job takes them."""
        self.edits(**products)
        self.trial.driver.adopt(self.served)
        self.trial.finish()

    def reader(self, **limits: Any) -> StateReader:
        return StateReader(
            stores=StorePool([self.trial.store]),
            view=PlanView(snapshot=self.snapshot, jobs=lambda: self.jobs, plan_of=lambda _: self.served),
            boundaries=lambda _: (),
            **cast(Any, limits),
        )
