"""Simulates products whose documents wait at gates: until a root is quiet, and not too often."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

from processor.engine.plan.plan import Plan
from processor.language.product.product import Gate
from tests.simulator import product_sets
from tests.simulator.product_sets import ProductSetSimulation
from tests.simulator.run import Simulation
from tests.simulator.without.switch import replacing

REPEATING = {"delivered late", "acknowledgement lost", "not delivered", "zombie task", "zombie job"}
"""After these faults a message may be out of which no driver knows."""
ROUND = 10.0
"""How long a round may last. A round that fails has noted its begin only."""


class GatedSimulation(Simulation):
    """A run in which each product has a gate of its own."""

    __slots__ = ()

    def start_plan(self) -> Plan:
        plan, rng = Simulation.start_plan(self), Random(f"{self.seed} gates")
        products = {
            name: replace(planned, product=replace(planned.product, gate=draw_gate(rng)))
            for name, planned in plan.products.items()
        }
        return replace(plan, products=products)

    def run(self) -> None:
        Simulation.run(self)
        if self.world.faults.keys() & REPEATING:
            return
        slack = 2 * self.world.conditions.max_clock_skew + (ROUND if self.world.faults else 0)
        last: dict[tuple[str, bytes | None], float] = {}
        for at, message in self.world.broker.log:
            root = (message.topic, message.key)
            distance, last[root] = at - last.get(root, -inf), at
            if distance + slack < self.start_plan().products[message.topic].product.gate.every:
                self.problem = self.problem or f"{root}: two messages have a distance of {distance:.1f} s"


def draw_gate(rng: Random) -> Gate:
    """A gate that holds something."""
    at_most = rng.choice((5.0, 20.0, 60.0))
    return Gate(quiet=rng.choice((0.1, 2.0, 5.0)), every=min(at_most, rng.choice((0.0, 30.0))), at_most=at_most)


class GatedSetSimulation(ProductSetSimulation):
    """A run with a random set of products, whose gates operators change, with their contents or alone."""

    __slots__ = ()

    def run(self) -> None:
        with replacing((product_sets, "CONTENTS", _with_gates))():
            ProductSetSimulation.run(self)


def _with_gates(contents: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Each content, and again with each of some gates."""
    gates: list[dict[str, Any]] = [{}, {"publish": {"quiet": "2 s"}}, {"publish": {"every": "30 s"}}]
    return {name: [{**one, **gate} for one in some for gate in gates] for name, some in contents.items()}
