"""Simulates products whose documents wait at gates: until a root is quiet, and not too often."""

from dataclasses import replace
from math import inf
from random import Random

from processor.plan.plan import Plan
from processor.product.gate import Gate
from tests.simulator.run import Simulation


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
        last: dict[tuple[str, bytes], float] = {}
        for at, message in self.world.broker.log:
            root = (message.topic, message.key)
            distance = at - last.get(root, -inf) + 2 * self.world.conditions.max_clock_skew
            last[root] = at
            if distance < self.start_plan().products[message.topic].product.gate.every:
                self.problem = self.problem or f"{root}: two messages have a distance of {distance:.1f} s"


def draw_gate(rng: Random) -> Gate:
    """A gate that holds something."""
    at_most = rng.choice((5.0, 20.0, 60.0))
    return Gate(quiet=rng.choice((0.1, 2.0, 5.0)), every=min(at_most, rng.choice((0.0, 10.0))), at_most=at_most)
