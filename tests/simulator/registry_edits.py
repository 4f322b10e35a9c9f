"""Simulates operators who edit the registry while the job runs: they add, change, publish again, pause, resume and remove
products, give them other topics, and retire slots, at any moment between the requests of the job.

At the end every product runs again, and the last documents are those of the products as the registry has them then.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.rounds.registry_follower import RegistryFollower
from processor.engine.rounds.round import PublishSetup
from processor.language.definitions.load import load
from processor.language.product.product import Definitions, Product
from processor.values.record import Message
from registry.edits.apply import apply
from registry.edits.edit import find_product
from registry.edits.operations import pause, remove, republish, retire
from registry.errors import RegistryError
from tests.simulator.actor import Actor, RegistryClient
from tests.simulator.edit_shapes import CONTENTS, definitions_of, texts
from tests.simulator.run import Simulation
from tests.simulator.shape_definitions import STARS
from tests.simulator.shapes import Shape, shape_of

EDITS = (1, 2, 4, 10)
"""How many edits a run has."""


@dataclass(kw_only=True)
class EditSimulation(Simulation):
    """A run with edits. `contents`: the content that each product has, by its number. `edits_left`: how many edits follow.
    `versions`: the products of each version, by name. `emptied`: the topic and the name of each product that operators removed
    with tombstones: the documents of others stay. `topics`: of the products whose topic has another name. `catalogue`: the
    contents that each product may have; `entities`: the text of their entities."""

    contents: dict[str, int] = field(default_factory=dict)
    edits_left: int = 0
    versions: dict[tuple[str, int], Product] = field(default_factory=dict)
    emptied: set[tuple[str, str]] = field(default_factory=set)
    topics: Mapping[str, str] = field(default_factory=dict)
    catalogue: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=lambda: CONTENTS)
    rng: Random = field(default_factory=Random)
    entities: str = STARS["entities.yaml"]

    def run(self) -> None:
        self.rng = Random(f"{self.seed} edits")
        self.edits_left = self.rng.choice(EDITS)
        self._apply(dict.fromkeys(self.rng.sample(sorted(self.catalogue), self.rng.randint(1, self._most_first())), 0))
        super().run()
        self.problem = self.problem or self._old_version()

    def _most_first(self) -> int:
        """How many products the first version has at most."""
        return 2

    def start_plan(self) -> Plan:
        return self.fit(plan_of(self.world.registry.snapshot))

    def plan_now(self) -> Plan:
        return self.start_plan()

    def prepare(self, plan: Plan) -> PublishSetup | None:
        """Prepares the job for a plan."""
        return None

    def fit(self, plan: Plan) -> Plan:
        """The plan that the job applies, for one of the registry."""
        return plan

    def product_of(self, message: Message) -> Product:
        headers = dict(message.headers)
        name = (headers["statestore.product"] or b"").decode()
        return self.versions[name, int(headers["statestore.product_version"] or b"")]

    def is_left(self, message: Message) -> bool:
        name, topic = self.product_of(message).name, message.topic
        live = {one.topic: one.name for one in self.world.registry.snapshot.products}
        return live.get(topic) != name and (topic, name) not in self.emptied

    def _start(self) -> None:
        super()._start()
        job = self.job
        assert job is not None
        actor = Actor(world=self.world, name=f"job {job.lease.generation}")
        registry: Any = RegistryClient(actor)
        job.follower = RegistryFollower(
            driver=job.driver, registry=registry, lease=job.lease, prepare=self.prepare, fit=self.fit, seconds=0.0
        )
        self._run_driver(job, lambda job: job.take_version())

    def _act(self) -> bool:
        if self.job is not None and self.edits_left and self.rng.random() < 0.15:
            self._edit()
            return True
        if self.job is not None and self.rng.random() < 0.05:  # far behind, or no more
            behind = self.job.driver.progress.walks.behind
            self._run_driver(self.job, lambda job: job.driver.end_catch_up() if behind else job.driver.begin_catch_up())
            return True
        if super()._act():
            return True
        if self.edits_left:
            self._edit()
            return True
        self._resume_all()
        registry, job = self.world.registry, self.job
        if job is not None and job.driver.progress.walks.behind:
            self._run_driver(job, lambda job: job.driver.end_catch_up())
            return True
        if job is not None and (job.follower is None or job.follower.snapshot != registry.snapshot):
            self._run_background_work(job)
            return True
        self.shape = shape_with(definitions_of(registry.snapshot.products, self.entities), self.shape.name)
        return job is not None and job.pending

    def _edit(self) -> None:
        self.edits_left -= 1
        rng, registry = self.rng, self.world.registry
        live = [one.name for one in (*registry.snapshot.products, *registry.snapshot.waiting)]
        kind = rng.choice(("apply", "apply", "apply", "republish", "remove", "pause", "resume", "retire"))
        name = rng.choice(live) if live else ""
        try:
            if kind == "apply" or not name:
                self._apply(self._some_contents())
            elif kind == "republish":
                self._change(lambda stored: republish(stored, name))
            elif kind == "remove":
                self._remove(name, tombstones=rng.random() < 0.5)
            elif kind == "retire":
                if slots := registry.snapshot.assignments:  # products without joins by slots have none
                    slot = rng.choice(slots)
                    self._change(lambda stored: retire(stored, slot.entity, slot.slot))
            else:
                self._change(lambda stored: pause(stored, name, paused=kind == "pause"))
        except RegistryError as error:
            self.world.log(f"the registry refuses: {error}")

    def _remove(self, name: str, *, tombstones: bool) -> None:
        product = find_product(self.world.registry.snapshot.products, name)
        self._change(lambda stored: remove(stored, name, tombstones=tombstones))
        if product is not None:
            (self.emptied.add if tombstones else self.emptied.discard)((product.topic, name))

    def _some_contents(self) -> dict[str, int]:
        """The products that an operator adds or changes at once, each with its content."""
        name = self.rng.choice(sorted(self.catalogue))
        return {name: self.rng.randrange(len(self.catalogue[name]))}

    def _resume_all(self) -> None:
        for one in self.world.registry.snapshot.products:
            if one.paused:
                self._change(lambda stored, name=one.name: pause(stored, name, paused=False))

    def _apply(self, contents: dict[str, int], topics: Mapping[str, str] | None = None) -> None:
        topics = {**self.topics, **(topics or {})}
        definitions = load({"entities.yaml": self.entities, **texts(contents, topics, self.catalogue)})
        registry = self.world.registry
        self._change(lambda stored: apply(stored, requirements_of(definitions), registry.has_run))
        self.contents |= contents
        self.emptied = {one for one in self.emptied if one[1] not in contents}  # no tombstones follow in a former topic
        self.facts["other topics"] += self.topics != topics
        self.topics = topics

    def _old_version(self) -> str | None:
        """A last document that shows an old version of its product."""
        last = {(m.topic, m.key): m for _, m in self.world.broker.log}
        versions = {one.topic: one.version for one in self.world.registry.snapshot.products}
        for (topic, key), message in last.items():
            shown = int(dict(message.headers)["statestore.product_version"] or b"")
            if (
                message.value is not None
                and topic in versions
                and not self.is_left(message)
                and shown != versions[topic]
            ):
                return f"{topic} {key!r} shows version {shown}, not {versions[topic]}"
        return None

    def _change(self, change: Any) -> None:
        registry = self.world.registry
        for line in registry.edit(change):
            self.facts["edits"] += 1
            self.world.log(f"edit: {line}")
        for one in (*registry.snapshot.products, *registry.snapshot.waiting):
            if (one.name, one.version) not in self.versions:
                self.versions[one.name, one.version] = definitions_of([one], self.entities).products[one.name]


def shape_with(definitions: Definitions, name: str = "edits") -> Shape:
    """The shape with these products. The plan stays, since only a start needs it."""
    shape = copy.copy(shape_of(name))
    object.__setattr__(shape, "definitions", definitions)
    return shape
