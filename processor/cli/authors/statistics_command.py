"""`statestore statistics`: takes statistics of the state, shows them, and stores them in the registry for `plan`."""

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from random import Random, randrange

from processor.cli.arguments import positive
from processor.cli.chosen_plan import stored_state
from processor.cli.options import REGISTRY, TABLE, add_settings, reachable_settings
from processor.environment.settings.resolve import open_registry
from processor.text import table_lines, visible
from processor.tools.inspect.statistics import take_statistics
from registry.model import Statistics

SAMPLE = 200


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "statistics", help="count rows, and the rows that joins find, for the estimates of `plan`"
    )
    sample = f"rows of each entity whose size and joins are measured (default: {SAMPLE}); all rows are counted"
    parser.add_argument("--sample", metavar="N", type=positive, default=SAMPLE, help=sample)
    parser.add_argument("--seed", metavar="S", type=int, help="seed of the sample: the same seed takes the same sample")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(parser, *REGISTRY, *TABLE)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    random = Random(randrange(2**32) if options.seed is None else options.seed)
    with (
        reachable_settings(options) as settings,
        stored_state(settings) as (plan, store),
        ThreadPoolExecutor(settings.threads) as pool,
    ):
        taken = take_statistics(
            plan, store, sample=options.sample, random=random, at=datetime.now(UTC), map_counts=pool.map
        )
        with open_registry(settings) as registry:
            registry.statistics.keep(taken)
    print(
        json.dumps(asdict(taken), indent=2, default=datetime.isoformat)
        if options.json
        else visible("\n".join(statistics_lines(taken)))
    )
    return 0


def statistics_lines(taken: Statistics) -> Iterator[str]:
    """The statistics as two tables."""
    entities = [[e.entity, f"{e.rows:,}", f"{e.mean_bytes:,.0f}", f"{e.most_bytes:,}"] for e in taken.entities]
    entities.insert(0, ["entity", "rows", "mean bytes", "most bytes"])
    joins = [[str(j.join), j.direction, f"{j.mean:,.2f}", f"{j.most:,}", j.value or ""] for j in taken.joins]
    joins.insert(0, ["join", "direction", "mean rows", "most rows", "of the value"])
    tables = (table_lines(entities, right=(1, 2, 3)), table_lines(joins, right=(2, 3)))
    yield from (f"  {line}" for table in tables for line in table)
