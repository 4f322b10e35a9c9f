"""Measure the CPU of a request to DynamoDB, from the store's call to the items that it returns: boto3 and the lean client.

    python -m benchmarks.clients [--requests N]

Promises: both clients ask the same stub (`benchmarks.stub_api`) in one run, and take turns, so that a busy machine slows both.
CPU is that of the client's process, with the garbage collector of a worker. Does not: measure TLS, or DynamoDB itself.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, Literal

from benchmarks.stub_api import ROWS, TABLE, star, stub_api
from benchmarks.tables import format_table, min_median_max
from processor.cli.options import set_embedded_credentials
from processor.engine.rounds.step_runner import tune_garbage_collector
from statestore.dynamodb.store import DynamoStore
from statestore.store import Delete, Query
from statestore.writes import write_image

CLIENTS: tuple[Literal["boto3", "lean"], ...] = ("boto3", "lean")
IN_FLIGHT = (1, 16)
SHARE = {"boto3": 10}
"""A slow client sends fewer requests: this part of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """One operation by one client, with this many requests in flight. For each repetition, `cpu`: CPU milliseconds of a request;
    `rate`: requests per second of the clock."""

    operation: str
    in_flight: int
    client: str
    cpu: tuple[float, ...]
    rate: tuple[float, ...]


WRITE = write_image(star(7), below=star(7).version)
KEYS = [star(number).key for number in range(ROWS)]
Ask = Callable[[DynamoStore], Any]
OPERATIONS: dict[str, Ask] = {
    "UpdateItem": lambda store: store.write(WRITE),
    "DeleteItem": lambda store: store.delete(Delete(key=WRITE.key)),
    f"Query of {ROWS} rows": lambda store: store.query(Query(slot="GSI_1", value="octocat", entity="star")),
    f"BatchGetItem of {ROWS} rows": lambda store: store.get(KEYS),
}


def measure_clients(requests: int, repetitions: int) -> list[ClientCost]:
    """The cost of each operation by each client, one and several requests in flight."""
    set_embedded_credentials()
    tune_garbage_collector()
    with stub_api() as endpoint:
        return list(_measure(endpoint, requests, repetitions))


def _measure(endpoint: str, requests: int, repetitions: int) -> Iterator[ClientCost]:
    stores: dict[str, DynamoStore] = {
        client: DynamoStore(table=TABLE, endpoint_url=endpoint, region="us-east-1", client=client) for client in CLIENTS
    }
    for operation, ask in OPERATIONS.items():
        for in_flight in IN_FLIGHT:
            found: dict[str, list[tuple[float, float]]] = {client: [] for client in CLIENTS}
            for _ in range(repetitions):
                for client in CLIENTS:
                    found[client].append(_run(stores[client], ask, requests // SHARE.get(client, 1), in_flight))
            for name, costs in found.items():
                cpu, rate = zip(*costs, strict=True)
                yield ClientCost(operation=operation, in_flight=in_flight, client=name, cpu=cpu, rate=rate)
    for store in stores.values():
        store.close()


def _run(store: DynamoStore, ask: Ask, requests: int, in_flight: int) -> tuple[float, float]:
    """CPU milliseconds of a request, and requests per second."""
    with ThreadPoolExecutor(in_flight) as pool:
        each = map if in_flight == 1 else pool.map
        list(each(ask, [store] * (4 * in_flight)))  # opens the connections
        began = perf_counter(), process_time()
        for _ in each(ask, [store] * requests):
            pass
        wall, cpu = perf_counter() - began[0], process_time() - began[1]
    return 1000 * cpu / requests, requests / wall


def format_clients(costs: Sequence[ClientCost]) -> tuple[str, str]:
    """The title and the table of the clients of DynamoDB."""
    rows = [
        (
            c.operation,
            f"{c.in_flight}",
            c.client,
            " / ".join(min_median_max(c.cpu, ".3f")),
            " / ".join(min_median_max(c.rate, ",.0f")),
        )
        for c in costs
    ]
    title = (
        f"**A request to DynamoDB**, against a stub, one process, {len(costs[0].cpu)} repetitions: min / median / max."
    )
    head = ("operation", "in flight", "client", "CPU ms per request", "requests/s, by the clock")
    return title, format_table(head, rows)


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description="Measures the CPU of a request by both clients of DynamoDB.")
    options.add_argument("--requests", type=int, default=10_000)
    options.add_argument("--repetitions", type=int, default=5)
    given = options.parse_args()
    costs = measure_clients(given.requests, given.repetitions)
    print(*format_clients(costs), f"Load average {os.getloadavg()[0]:.1f}.", sep="\n\n")


if __name__ == "__main__":
    main()
