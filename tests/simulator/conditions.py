"""The conditions of a run: drawn from the seed, except those that the caller sets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

W = 5.0
S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of a run. Names that end in `_chance` are probabilities; times are in seconds.

    shape: the products and tables (`tests.simulator.shapes`).
    events: how many changes the history has. many_moves: whether most changes move rows between documents.
    late_events: whether the last third of the history arrives after its delete markers may have expired.
    changes: of topics, each with the number of events before it and its kind; None draws them (`tests.simulator.source_topics`).
    same_key_chance: that a change is of the same row as the one before. delete_chance: that it deletes a row that is there.
    pauses: seconds that may pass before a source continues whose records are all read.
    truncate_chance: that a change empties a table; then each topic has one partition.
    partitions: of each topic. broken_chance: that a change is a dead letter.
    unavailable_chance: that a change leaves out a column that it did not change.
    script: the name of a history written by hand, in place of a drawn one (`tests.simulator.scripted_histories`).
    source_order: whether batches follow the order in which the source wrote, across topics.

    consistent: whether the store says that no index is late, and refuses the writes of earlier runs. Then `lag` must be `none`.
    lag: of the indexes: `none`, `short` (always below W), `mid` (sometimes up to 2 S), `long` (up to 8 S). `rows`: each row has a
    lag of its own in each index, around a multiple of S. late: these multiples; late_share: of the rows with such a lag;
    lag_change_chance: that a row's next write has another lag. late_target: only rows whose partition key starts with this text
    have such a lag.
    replicas: of each index.
    index_page: rows of a page of an index answer; 0 returns all rows at once.
    unprocessed_chance: that a batched read leaves keys out.
    tick_chance: that time passes at a request. max_clock_skew: of a job's machine, in either direction.

    batch_records: most records of a partition in a batch. slice_records: most records that the job processes in one round.
    small_round: the most pieces of work that one task does alone. reads_first: whether tasks read each row before they write it;
    None draws this for each entity and round.
    weak_seconds: how old the answer of a weak read may be.
    packs: whether rows store all columns that no product reads together, also small ones.
    lanes: of the job. fan_out_page: rows of a page of a fan-out. task_retries: how often Spark tries a failed task again.
    interleaving_chance: that the tasks of a stage take turns, request by request.
    settle_first_chance: that settle work runs before the next batch, so that open changes close between batches.

    max_faults: how many faults the run may have. fault_chance: that a request has one. fault_weights: of each kind of fault.
    fault_target: faults affect only requests whose name starts with this text.
    aims: instants between two durable requests of different kinds, at which an actor dies: how the name of the later request
    begins, and the number of the instant.
    zombie_chance: that an actor lives on after Spark or the operator gave it up.
    zombie_turn_chance: that a zombie continues at a request of another actor.
    checkpoint_loss_chance: that a failure of the job also loses the checkpoint.
    turns: of a source, an operator and a clock that choose their moments (`tests.simulator.chosen_moments`).
    letters_away_chance: that the topic of dead letters does not answer a running job, so that batches come before a replay.
    """

    shape: str
    events: int
    many_moves: bool
    late_events: bool
    partitions: int
    broken_chance: float
    unavailable_chance: float
    lag: str
    replicas: int
    tick_chance: float
    batch_records: int
    slice_records: int
    small_round: int
    reads_first: bool | None
    packs: bool
    weak_seconds: float
    lanes: int
    max_faults: int
    fault_chance: float
    fault_weights: Mapping[str, int]
    zombie_chance: float
    zombie_turn_chance: float
    task_retries: int
    checkpoint_loss_chance: float
    interleaving_chance: float
    settle_first_chance: float
    source_order: bool
    max_clock_skew: float
    fan_out_page: int
    index_page: int
    unprocessed_chance: float
    truncate_chance: float = 0.0
    letters_away_chance: float = 0.0
    consistent: bool = False
    script: str | None = None
    fault_target: str = ""
    changes: tuple[tuple[int, str], ...] | None = None
    same_key_chance: float = 0.0
    late_share: float = 0.0
    late_target: str = ""
    lag_change_chance: float = 0.4
    delete_chance: float = 0.2
    late: tuple[float, ...] = (0.5, 1, 2, 3, 4, 5, 6, 8, 12, 12, 20, 20)
    pauses: tuple[float, ...] = (0, 0, 0, 1, 5, 10, 20, 30, 60)
    aims: tuple[tuple[str, int], ...] = ()
    turns: int = 0


FAULT_WEIGHTS = {
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


def draw_conditions(rng: Random, overrides: Mapping[str, Any]) -> Conditions:
    """Draws the conditions of a seed, then sets those in `overrides`."""
    faulty = rng.random() < 0.8
    many_moves = rng.random() < 0.35
    own = Random()
    own.setstate(rng.getstate())  # a generator of its own: the other draws of a seed stay as they were
    drawn = Conditions(
        shape=rng.choice(("stars", "stars", "github")),
        events=rng.randint(4, rng.choice((8, 14, 25))),
        many_moves=many_moves,
        late_events=rng.random() < 0.15,
        partitions=rng.choice((1, 2)),
        broken_chance=rng.choice((0, 0, 0.1)),
        unavailable_chance=rng.choice((0, 0, 0.3)),
        lag=rng.choice(("none", "short", "short", "mid", "long", "long")),
        replicas=rng.choice((1, 2)),
        tick_chance=rng.choice((0.05, 0.2, 0.5)),
        batch_records=rng.choice((1, 2, 4, 8)),
        slice_records=rng.choice((2, 4, 100)),
        small_round=own.choice((0, 100)),
        reads_first=own.choice((False, True)),
        packs=own.choice((False, True)),
        weak_seconds=own.choice((0, 1, 10, 10)),
        lanes=rng.choice((1, 2)),
        max_faults=rng.choice((1, 2, 3, 5)) if faulty else 0,
        fault_chance=rng.choice((0.005, 0.02, 0.05)),
        fault_weights=FAULT_WEIGHTS,
        zombie_chance=rng.choice((0, 0.5, 1)),
        zombie_turn_chance=rng.choice((0.1, 0.3, 0.6)),
        task_retries=rng.choice((0, 3)),
        checkpoint_loss_chance=rng.choice((0, 0.5, 1)),
        interleaving_chance=rng.choice((0, 0, 0, 0.5)),
        settle_first_chance=rng.choice((0, 0, 0.5, 0.9)),
        source_order=rng.random() < 0.5,
        max_clock_skew=rng.choice((0, 3)),
        fan_out_page=rng.choice((1, 1_000, 1_000)),
        index_page=rng.choice((0, 0, 1)),
        unprocessed_chance=rng.choice((0, 0, 0.2)),
    )
    conditions = replace(drawn, **overrides)
    return replace(conditions, partitions=1) if conditions.truncate_chance else conditions
