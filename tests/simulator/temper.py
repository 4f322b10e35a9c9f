"""What kind of world a run lives in: drawn from the seed, unless a test says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

W = 5.0
S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Temper:
    """A world's habits; times in seconds, the rest as probabilities or counts unless said otherwise.

    events, hot, two_parts, partitions, broken, unsent: the history (`tests.simulator.history`).
    lag: `none`, `short` (always below W), `mid` (now and then up to 2 S), `long` (up to 8 S). replicas: of each index.
    tick: that time passes at a request. batch: most records of a partition in a batch. publish_slots: of the job.
    faults: how many there may be; fault: that a request meets one; kinds: weights of them.
    zombie: that what was lost lives on; acts: that a zombie goes on at a request of a living one; retries: of a task by Spark.
    lost_checkpoint: that a crash takes it. interleaved: that the tasks of a stage take turns request by request.
    pause: that the next batch waits for settle work, again and again, so that open changes close between batches.
    in_order: that batches follow the order in which the source wrote, across topics.
    apart: by how many seconds the clocks of jobs differ at most, either way.
    page: rows of a page of a fan-out; answer: of a page of an index answer, 0 for all; unprocessed: that a batched read
    leaves keys out. plot: a history written by hand (`tests.simulator.plots`) in place of a drawn one. aim: how the requests
    begin that faults strike.
    """

    shape: str
    events: int
    hot: bool
    two_parts: bool
    partitions: int
    broken: float
    unsent: float
    lag: str
    replicas: int
    tick: float
    batch: int
    pieces: int
    publish_slots: int
    faults: int
    fault: float
    kinds: Mapping[str, int]
    zombie: float
    acts: float
    retries: int
    lost_checkpoint: float
    interleaved: float
    pause: float
    in_order: bool
    apart: float
    page: int
    answer: int
    unprocessed: float
    plot: str | None = None
    aim: str = ""

    def with_(self, boost: Mapping[str, Any]) -> "Temper":
        return replace(self, **boost)


KINDS = {
    "crash before": 4,
    "crash after": 4,
    "task lost": 4,
    "throttled": 1,
    "answer lost": 2,
    "sent again": 3,
    "acknowledgement lost": 4,
    "delivered late": 4,
    "not delivered": 2,
}


def draw(rng: Random, boost: Mapping[str, Any]) -> Temper:
    """The world of a seed; `boost` says otherwise."""
    faulty = rng.random() < 0.8
    hot = rng.random() < 0.35
    return Temper(
        shape=rng.choice(("stars", "stars", "github")),
        events=rng.randint(4, rng.choice((8, 14, 25))),
        hot=hot,
        two_parts=rng.random() < 0.15,
        partitions=rng.choice((1, 2)),
        broken=rng.choice((0, 0, 0.1)),
        unsent=rng.choice((0, 0, 0.3)),
        lag=rng.choice(("none", "short", "short", "mid", "long", "long")),
        replicas=rng.choice((1, 2)),
        tick=rng.choice((0.05, 0.2, 0.5)),
        batch=rng.choice((1, 2, 4, 8)),
        pieces=rng.choice((2, 4, 100)),
        publish_slots=rng.choice((1, 2)),
        faults=rng.choice((1, 2, 3, 5)) if faulty else 0,
        fault=rng.choice((0.005, 0.02, 0.05)),
        kinds=KINDS,
        zombie=rng.choice((0, 0.5, 1)),
        acts=rng.choice((0.1, 0.3, 0.6)),
        retries=rng.choice((0, 3)),
        lost_checkpoint=rng.choice((0, 0.5, 1)),
        interleaved=rng.choice((0, 0, 0, 0.5)),
        pause=rng.choice((0, 0, 0.5, 0.9)),
        in_order=rng.random() < 0.5,
        apart=rng.choice((0, 3)),
        page=rng.choice((1, 1_000, 1_000)),
        answer=rng.choice((0, 0, 1)),
        unprocessed=rng.choice((0, 0, 0.2)),
    ).with_(boost)
