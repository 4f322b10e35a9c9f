"""Draws the conditions and the history of a seed, and simulates the run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from random import Random
from typing import Any

from processor.environment.settings.settings import Settings
from tests.simulator.conditions import Conditions, S, W, draw_conditions
from tests.simulator.doubles import doubles
from tests.simulator.history import Event, draw_events, make_topics
from tests.simulator.run import Simulation
from tests.simulator.scripted_histories import scripted_events
from tests.simulator.shapes import Shape, shape_of
from tests.simulator.spark_checkpoint import Checkpoint
from tests.simulator.world import World


def draw_run(seed: int, overrides: Mapping[str, Any]) -> tuple[Shape, Conditions, list[Event]]:
    """The products, the conditions and the history of a seed."""
    rng = Random(f"{seed} history")
    conditions = draw_conditions(rng, overrides)
    shape = shape_of(conditions.shape)
    if conditions.script:
        return shape, conditions, scripted_events(shape, conditions.script)
    return shape, conditions, draw_events(rng, shape, conditions)


def simulate(
    seed: int,
    *,
    overrides: Mapping[str, Any] | None = None,
    keep: Sequence[int] | None = None,
    trace: bool = False,
    switch: Callable[[], AbstractContextManager[None]] = nullcontext,
    simulation_class: type[Simulation] = Simulation,
) -> Simulation:
    """Runs one seed. `overrides`: conditions that the seed does not draw. `keep`: the indexes of the events to keep; None keeps
    all. `trace`: whether the world records a trace. `switch`: switches a protection off during the run."""
    shape, conditions, events = draw_run(seed, overrides or {})
    events = simulation_class.change_events(seed, events)
    if keep is not None:
        events = [events[i] for i in keep]
    world = World(rng=Random(f"{seed} world"), conditions=conditions, slots=shape.slots, trace=[] if trace else None)
    logs = simulation_class.change_logs(seed, make_topics(shape, events, conditions.partitions))
    first = make_topics(shape, [e for e in events if not e.late], conditions.partitions)
    settings = replace(
        Settings(),
        wait_seconds=W,
        settle_seconds=S,
        lanes=conditions.lanes,
        marker_days=1,
        slots=shape.slots,
        fan_out_page=conditions.fan_out_page,
        walk_page=conditions.fan_out_page,
        walk_rate=0,
    )
    simulation = simulation_class(
        seed=seed,
        shape=shape,
        events=events,
        world=world,
        settings=settings,
        logs=logs,
        available={p: len(first.get(p, ())) if conditions.late_events else len(log) for p, log in logs.items()},
        checkpoint=Checkpoint(offsets=dict.fromkeys(logs, 0)),
    )
    with doubles(world), switch():
        simulation.run()
    return simulation
