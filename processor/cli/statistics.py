"""`statestore statistics`: takes statistics of the state, shows them, and keeps them for `plan`."""

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from random import Random, randrange

from processor.cli.options import add_settings, addressed
from processor.cli.output import aligned
from processor.cli.trial import positive
from processor.planning import plan_of
from processor.statistics import take
from registry.statistics import Statistics

SAMPLE = 200


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "statistics", help="count the rows, and what joins find of them, for the estimates of plan"
    )
    sample = f"rows of each entity that are measured, and asked for in joins (default: {SAMPLE}); all are counted"
    parser.add_argument("--sample", metavar="N", type=positive, default=SAMPLE, help=sample)
    parser.add_argument("--seed", metavar="S", type=int, help="takes the same sample again")
    parser.add_argument("--json", action="store_true")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.worker import open_store
    from registry.repository import Registry

    random = Random(randrange(2**32) if options.seed is None else options.seed)
    with (
        addressed(options) as settings,
        Registry(settings.registry, settings.registry_schema) as registry,
        ThreadPoolExecutor(settings.threads) as pool,
    ):
        plan, store = plan_of(registry.snapshot()), open_store(settings)
        taken = take(plan, store, sample=options.sample, random=random, at=datetime.now(UTC), each=pool.map)
        registry.keep_statistics(taken)
    print(json.dumps(asdict(taken), indent=2, default=datetime.isoformat) if options.json else "\n".join(lines(taken)))
    return 0


def lines(taken: Statistics) -> Iterator[str]:
    """Statistics as two tables."""
    of = [[one.entity, f"{one.rows:,}", f"{one.mean_bytes:,.0f}", f"{one.most_bytes:,}"] for one in taken.entities]
    yield from aligned([["entity", "rows", "mean bytes", "most bytes"], *of], right=(1, 2, 3))
    joins = [
        [str(one.join), one.direction, f"{one.mean:,.2f}", f"{one.most:,}", one.value or ""] for one in taken.joins
    ]
    yield from aligned([["join", "direction", "mean rows", "most rows", "of the value"], *joins], right=(2, 3))
