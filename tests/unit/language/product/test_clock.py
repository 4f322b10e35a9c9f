"""A document of a product with a clock stays the same until the tick that its renderer names."""

from collections import Counter
from datetime import datetime
from random import Random
from typing import Any

import pytest

from processor.language.definitions.describe import describe_entity, describe_product
from processor.language.definitions.load import load
from processor.language.product.document import GONE, Match, Renderer
from processor.language.product.expressions.expression import ClockTime, clock_text
from processor.values import canonical_json
from tests.simulator.conditions import draw_conditions
from tests.simulator.history import draw_events, tables_after
from tests.simulator.oracle import documents
from tests.simulator.shapes import shape_of

ENTITIES = "row: {key: [id], columns: {id: int, at: timestamp, day: date}}"
AT = int((datetime(2026, 2, 27, 13, 5, 40) - datetime(1970, 1, 1)).total_seconds())


def renderer_of(expression: str, step: str) -> Renderer:
    product = {"product": "p", "root": "row", "clock": step, "value": expression}
    definitions = load({"entities.yaml": ENTITIES, "p.json": canonical_json.dumps(product)})
    return Renderer(
        product=definitions.products["p"], entities=definitions.entities, tally=Counter(), clock=ClockTime()
    )


def shown(expression: str, *, step: str = "1 minute", clock: int = AT, **columns: Any) -> tuple[Any, str | None]:
    """The value of an expression over a row, and the tick from which on it may differ."""
    renderer = renderer_of(expression, step)
    renderer.clock.now, time = clock, renderer.clock
    value = renderer.document(Match({"id": 1, "at": None, "day": None, **columns}, {}))
    assert value is not GONE
    return value, None if time.changes is None else clock_text(time.changes)


@pytest.mark.parametrize(
    ("expression", "at", "expected"),
    [
        ("at > clock - interval '7 days'", "2026-02-21T00:00:00Z", (True, "2026-02-28T00:00:00")),
        ("at > clock - interval '7 days'", "2026-02-21T00:00:00.5Z", (True, "2026-02-28T00:01:00")),
        ("at >= clock - interval '7 days'", "2026-02-21T00:00:00Z", (True, "2026-02-28T00:01:00")),
        ("at > clock - interval '7 days'", "2026-02-20T00:00:00Z", (False, None)),
        ("at < clock", "2026-02-27T13:06:00Z", (False, "2026-02-27T13:07:00")),
        ("at <= clock", "2026-02-27T13:06:00Z", (False, "2026-02-27T13:06:00")),
        ("clock < at", "2026-02-27T13:04:00Z", (False, None)),
        ("clock + interval '1 month' > at", "2026-03-31T00:00:00Z", (False, "2026-03-01T00:00:00")),
        ("at between clock - interval '1 h' and clock", "2026-02-27T13:00:00Z", (True, "2026-02-27T14:01:00")),
        ("at + interval '30 days' > clock", "2026-02-01T00:00:00Z", (True, "2026-03-03T00:00:00")),
        ("at > clock", None, (None, None)),
        ("at > clock", "9999-12-31T23:59:59Z", (True, None)),
        ("date_trunc('hour', at) = date_trunc('hour', clock)", "2026-02-27T13:59:00Z", (True, "2026-02-27T14:00:00")),
        ("clock::date - at::date", "2026-02-20T13:59:00Z", (7, "2026-02-28T00:00:00")),
        ("extract(month from clock)", None, (2, "2026-03-01T00:00:00")),
        ("(clock - interval '13 h')::date + 1 > at::date", "2026-02-27T00:00:00Z", (True, None)),
        ("to_char(clock::date, 'FMDD') || extract(hour from clock)", None, ("2713", "2026-02-27T14:00:00")),
        ("current_date - 3", None, ("2026-02-24", "2026-02-28T00:00:00")),
    ],
)  # fmt: skip
def test_a_comparison_with_the_clock_names_the_tick_at_which_it_changes(
    expression: str, at: str | None, expected: tuple[Any, str | None]
) -> None:
    assert shown(expression, at=at) == expected


ZURICH = "at time zone 'Europe/Zurich'"
TODAY = f"at >= date_trunc('day', clock {ZURICH}) {ZURICH}"


def seconds(text: str) -> int:
    return int((datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds())


@pytest.mark.parametrize(
    ("expression", "clock", "at", "expected"),
    [
        (TODAY, "2026-02-27T13:05:00", "2026-02-26T23:00:00Z", (True, "2026-02-27T23:00:00")),
        (TODAY, "2026-02-27T13:05:00", "2026-02-26T22:59:59Z", (False, None)),
        (TODAY, "2026-03-28T23:30:00", "2026-03-29T10:00:00Z", (True, "2026-03-29T22:00:00")),  # a day of 23 hours
        (TODAY, "2026-02-27T13:05:00", "2026-10-25T22:59:00Z", (True, "2026-10-25T23:00:00")),  # one of 25
        (TODAY, "2026-02-27T13:05:00", "9999-12-30T12:00:00Z", (True, "9999-12-30T23:00:00")),
        (f"extract(hour from clock {ZURICH})", "2026-03-29T00:30:00", None, (1, "2026-03-29T01:00:00")),
        (f"extract(hour from clock {ZURICH})", "2026-10-25T00:30:00", None, (2, "2026-10-25T02:00:00")),
        (f"(clock {ZURICH})::date::text", "2026-02-27T23:30:00", None, ("2026-02-28", "2026-02-28T23:00:00")),
        (f"clock {ZURICH} > at {ZURICH}", "2026-10-25T00:30:00", "2026-10-25T01:15:00Z", (True, "2026-10-25T01:00:00")),
        (f"clock {ZURICH} > at {ZURICH}", "2026-10-25T01:00:00", "2026-10-25T01:15:00Z", (False, "2026-10-25T01:16:00")),
        ("(clock at time zone 'America/St_Johns')::date::text", "2005-10-30T02:29:00", None,
         ("2005-10-29", "2005-10-30T02:30:00")),
        ("(clock at time zone 'America/St_Johns')::date::text", "2005-10-30T02:30:00", None,
         ("2005-10-30", "2005-10-30T02:31:00")),  # at 00:01 the clocks go back to the day before
    ],
)  # fmt: skip
def test_a_local_day_of_the_clock_names_the_tick_at_which_it_changes(
    expression: str, clock: str, at: str | None, expected: tuple[Any, str | None]
) -> None:
    assert shown(expression, clock=seconds(clock), at=at) == expected


ZONES = (
    "Europe/Zurich",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/Havana",
)
CHANGES = ("2026-03-29T01:00:00", "2026-10-25T01:00:00", "2005-10-30T02:31:00", "2026-04-04T15:00:00", "2011-12-30T10:00:00",
           "2026-03-08T05:00:00", "2026-11-01T05:00:00")  # fmt: skip
LIMITS = (
    "clock {z}", "date_trunc('day', clock {z})", "date_trunc('hour', clock {z})", "(clock {z} - interval '1 month')",
    "date_trunc('hour', clock {z}) - interval '1 day'", "date_trunc('week', clock {z})",
)  # fmt: skip


@pytest.mark.rest
@pytest.mark.parametrize("seed", range(40))
def test_a_value_with_time_zones_is_the_same_until_exactly_the_tick_that_it_names(seed: int) -> None:
    rng = Random(f"{seed} zones")
    near = [seconds(at) for at in CHANGES]
    step, hours = rng.choice([(60, 4), (900, 60), (3_600, 240)])
    z = f"at time zone '{rng.choice(ZONES)}'"
    limit, sign = rng.choice(LIMITS).format(z=z), rng.choice(("<", "<=", ">", ">="))
    expression = rng.choice([f"at {z} {sign} {limit}", f"{limit} {sign} at {z}", f"({limit}) {z} {sign} at",
        f"extract(hour from {limit})", f"({limit})::date::text", f"date_trunc('hour', ({limit}) {z})"])  # fmt: skip
    if "trunc" in limit and not any(one in expression for one in (f" {sign} at", f"{sign} {limit}")):
        expression = f"(({limit}) {z}) {sign} at"
    begin = (rng.choice(near) - rng.randrange(hours * 1_800)) // step * step
    at = clock_text(begin + rng.randrange(-hours * 1_800, hours * 3_600)) + "Z"
    renderer, row = renderer_of(expression, f"{step} s"), Match({"id": 1, "at": at, "day": None}, {})
    first: Any = None
    due: int | None = begin
    for tick in range(begin, begin + hours * 3_600, step):
        renderer.clock.now = tick
        value, later = renderer.document(row), renderer.clock.changes
        if value != first:
            assert due == tick, (expression, clock_text(begin), at)
            first, due = value, later
        assert later == due, (expression, clock_text(tick), at)


def test_the_clock_is_cut_to_its_step() -> None:
    assert shown("at < clock", step="1 h", at="2026-02-27T13:00:00Z") == (False, "2026-02-27T14:00:00")
    assert shown("at < clock", step="1 day", at="2026-02-27T13:00:00Z") == (False, "2026-02-28T00:00:00")


@pytest.mark.rest
@pytest.mark.parametrize("seed", range(12))
def test_a_document_is_the_same_until_the_tick_that_it_names(seed: int) -> None:
    shape, rng = shape_of(f"clocked {seed}"), Random(f"{seed} ticks")
    definitions = shape.definitions
    tables = tables_after(shape, draw_events(rng, shape, draw_conditions(rng, {"events": 12, "shape": shape.name})))
    for product in (one for one in definitions.products.values() if one.clock):
        changes: dict[str, int | None] = {}
        before: dict[str, Any] = {}
        for tick in range(0, 240, product.clock):
            now, noted = documents(product, definitions, tables, tick), dict[str, int | None]()
            for key in now.keys() | before.keys():
                due = changes.get(key)
                if now.get(key) != before.get(key) and tick:
                    assert due is not None
                    assert due <= tick, (product.name, key)
            documents(product, definitions, tables, tick, noted)
            changes, before = noted, now


def test_a_product_with_a_clock_reads_back_as_it_is_described() -> None:
    for seed in range(5):
        shape = shape_of(f"clocked {seed}")
        for name, product in shape.definitions.products.items():
            described = canonical_json.dumps(describe_product(product))
            entities = {one: describe_entity(entity) for one, entity in shape.definitions.entities.items()}
            again = load({"entities.yaml": canonical_json.dumps(entities), "p.json": described})
            assert again.products[name] == product
