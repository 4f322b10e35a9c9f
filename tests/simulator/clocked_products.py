"""Simulates products with a clock: time passes while the job rests, and each last document must be right again.

The job restarts at any moment, on machines whose clocks differ. The clock of the products must not go back.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from processor.engine.protocol.ticks import CLOCK, clock_in
from processor.language.definitions.load import load
from processor.language.product.expressions.expression import clock_text
from processor.language.product.product import Definitions
from tests.simulator import product_sets
from tests.simulator.check import check_last_documents
from tests.simulator.product_sets import ProductSetSimulation
from tests.simulator.run import Simulation, WrongAtRest
from tests.simulator.without.switch import replacing

Row = dict[str, Any]
STEPS = ("1 s", "1 s", "2 s", "5 s", "15 s", "1 minute")
PASSES = 6
"""How often time passes while the job rests."""
ENTITIES = {
    "user": {
        "truncate": "delete",
        "key": ["email"],
        "columns": {"email": "string", "username": "string", "born": "timestamp", "span": "int"},
    },
    "star": {
        "truncate": "delete",
        "key": ["id"],
        "columns": {"id": "int", "username": "string", "at": "timestamp", "ends": "timestamp", "price": "int"},
    },
}


def _moment(r: Random, most: int = 150) -> str | None:
    return None if r.random() < 0.1 else f"{clock_text(r.randrange(most))}{r.choice(('', '', '.25', '.999999'))}Z"


def _name(r: Random) -> str | None:
    return None if r.random() < 0.15 else r.choice("ab")


CLOCKED_ROWS: dict[str, Callable[[Random], Row]] = {
    "user": lambda r: {"email": r.choice("xy"), "username": _name(r), "born": _moment(r), "span": r.randrange(40)},
    "star": lambda r: {
        "id": r.randrange(4),
        "username": _name(r),
        "at": _moment(r),
        "ends": _moment(r),
        "price": r.randrange(9),
    },
}


_BEFORE = "interval '268 days 22:58:20'"
"""After 1970-01-01, 100 seconds before the clocks of Rome went back an hour."""
LOCAL_CLOCKS = (
    "(date_trunc('minute', clock at time zone 'Africa/Monrovia') at time zone 'Africa/Monrovia')",  # 44:30 behind UTC
    f"((clock + {_BEFORE}) at time zone 'Europe/Rome' at time zone 'Europe/Rome' - {_BEFORE})",
)


def draw_clocked(rng: Random, local_clock: str = "clock") -> Definitions:
    """Some products, of which most have a clock. `local_clock`: what their expressions have in place of it."""
    products = [json.dumps(_product(rng, n)) for n in range(rng.randint(1, 3))]
    texts = {f"p{n}.yaml": re.sub(r'\bclock\b(?!":)', local_clock, one) for n, one in enumerate(products)}
    return load({"entities.yaml": json.dumps(ENTITIES), **texts})


def _condition(r: Random, at: str) -> str:
    seconds = r.choice((0, 5, 20, 60, 61))
    limit = r.choice((f"clock - interval '{seconds} seconds'", f"clock + interval '{seconds} s'", "clock"))
    if r.random() < 0.15:
        return f"date_trunc('minute', {at}) = date_trunc('minute', clock)"
    sign = r.choice(("<", "<=", ">", ">="))
    one = f"{at} {sign} {limit}" if r.random() < 0.5 else f"{limit} {sign} {at}"
    return f"{one} and {_condition(r, at)}" if r.random() < 0.2 else one


def _product(r: Random, n: int) -> dict[str, Any]:
    step = "" if n and r.random() < 0.25 else r.choice(STEPS)
    if not step:
        return {
            "product": f"p{n}",
            "root": "user",
            "embed": {"stars": {"many": "star", "on": {"username": "username"}}},
        }
    product: dict[str, Any] = {"product": f"p{n}", "clock": step}
    if r.random() < 0.25:
        selected: Row = {"name": "name", "open": f"count(*) filter (where {_condition(r, 'at')})"}
        group: Row = {"group": "star", "by": {"name": "username"}}
        if r.random() < 0.5:
            group["where"] = _condition(r, "ends")
        return {**product, "root": group, "fields": selected}
    product["root"] = "user"
    fields = {"email": "email", "minute": "extract(minute from clock)", "old": _condition(r, "born")}
    product["fields"] = {
        name: fields[name] for name in ("email", *r.sample(sorted(fields.keys() - {"email"}), r.randrange(3)))
    }
    if r.random() < 0.4:
        product["where"] = _condition(r, "born")
    if r.random() < 0.7:
        shown: Row = {"many": "star", "on": {"username": "username"}, "where": _condition(r, "at")}
        if r.random() < 0.3:
            shown["limit"] = 1
        if r.random() < 0.3:
            shown["required"] = True
        product["embed"] = {"stars": shown}
    if r.random() < 0.5:
        product["join"] = {"sold": {"many": "star", "on": {"username": "username"}}}
        product["fields"]["sum"] = f"sum(sold.price) filter (where {_condition(r, 'sold.at')})"
    return product


class ClockedSimulation(Simulation):
    """A run over products with a clock. `high`: the clock of the products so far. `passes`: how often time passed at rest."""

    high: int = 0
    passes: int = 0

    @property
    def clock(self) -> int:
        if self.job is not None:
            step = self.job.driver.progress.ticks.step
            self.high = max(self.high, int(self.world.now + self.world.skew) // step * step if step else 0)
        self.high = max(self.high, clock_in(self.world.table.get([CLOCK]).get(CLOCK)))  # also that of a zombie
        return self.high

    def end_job(self) -> None:
        if self.job is not None:
            self.high = max(self.high, self.job.driver.progress.ticks._kept)
        super().end_job()

    def _act(self) -> bool:
        if super()._act():
            return True
        if self.job is None or self.passes >= PASSES:
            return False
        self.passes += 1
        if (problem := check_last_documents(self)) is not None:
            raise WrongAtRest(problem)
        self._pass()
        return True

    def _pass(self) -> None:
        """Lets time pass, to the next tick or beyond it. Sometimes the job ends before."""
        world = self.world
        if world.rng.random() < 0.3:
            self.end_job()
        due = self.next_work(self.job) if self.job else None
        to_tick = due is not None and due > world.now and world.rng.random() < 0.5
        world.now = due if to_tick and due is not None else world.now + world.rng.choice((0.5, 1, 4, 20, 70))
        world.log("time passes")
        self.facts["passes"] += 1


class ClockedSetSimulation(ClockedSimulation, ProductSetSimulation):
    """A run with a random set of products, to which operators give clocks, and from which they take them."""

    def run(self) -> None:
        with replacing((product_sets, "CONTENTS", _with_clocks))():
            ProductSetSimulation.run(self)


def _with_clocks(contents: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Each content alone, and with each of some clocks: an edit gives the product a clock, or takes it."""
    clocks: list[dict[str, Any]] = [
        {},
        {"clock": "5 s", "where": "clock > '1970-01-01T00:01:30Z'"},
        {"clock": "1 minute", "where": "clock < '1970-01-01T00:03:00Z'"},
    ]
    return {name: [{**one, **clock} for one in some for clock in clocks] for name, some in contents.items()}
