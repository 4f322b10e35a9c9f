"""Measures look-ups of `statestore serve`: `python -m benchmarks.look_ups`.

One process: the application of `serve` over HTTP by uvicorn on loopback, one client with a kept connection, the memory store that
counts request units. So the times are those of the server itself, without a store and its network. Each document has
a root and CHILDREN rows of one join. The price is that of the read units at on-demand prices.
"""

import threading
from statistics import quantiles
from time import perf_counter, sleep

import httpx2
import uvicorn

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.programs.program import free_port
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.prices import DEFAULT
from processor.tools.web.serve.app import document_app
from processor.tools.web.serve.reader import PlanView, StateReader, StorePool
from processor.tools.web.server import GuardRules
from processor.values import canonical_json
from processor.values.record import Record
from registry.model import Snapshot
from statestore.memory import MeteredStore

ROOTS, CHILDREN, LOOK_UPS, ROUNDS = 200, 10, 1_000, 5
DEFINITIONS = {
    "entities.yaml": "user: {key: [id], columns: {id: int, name: string}}\n"
    "order: {key: [id], columns: {id: int, user_id: int, status: string}}\n",
    "person.yaml": "product: person\nroot: user\nembed: {orders: {many: order, on: {user_id: id}}}\n",
}


def main() -> None:
    store = MeteredStore()
    plan = plan_alone(load(DEFINITIONS), slots=20)
    trial = Trial(plan=plan, settings=Settings(), other_store=store)
    trial.batch(list(_records()))
    trial.finish()
    snapshot = Snapshot(version=1, slots=20, entities=(), products=(), assignments=(), joins=())
    reader = StateReader(
        stores=StorePool([store]),
        view=PlanView(snapshot=lambda: snapshot, plan_of=lambda _: plan),
        boundaries=lambda _: (),
    )
    port = free_port()
    app = document_app(reader, GuardRules(rate=1_000_000))
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", lifespan="off"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        sleep(0.01)
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http:
        for _ in range(ROUNDS):
            _measure(http, store)
    server.should_exit = True


def _records() -> list[Record]:
    records = list[Record]()
    for number in range(ROOTS):
        records.append(_record("user", len(records), {"id": number, "name": f"name {number}"}))
    for number in range(ROOTS * CHILDREN):
        row = {"id": number, "user_id": number % ROOTS, "status": "open"}
        records.append(_record("order", number, row))
    return records


def _record(topic: str, offset: int, row: dict[str, object]) -> Record:
    key = canonical_json.encode({"id": row["id"]})
    return Record(topic=topic, partition=0, offset=offset, epoch=1, key=key, value=canonical_json.encode(row))


def _measure(http: httpx2.Client, store: MeteredStore) -> None:
    """Prints the quantiles of one round, and the units of a look-up."""
    seconds, before = [], store.read_units
    for number in range(LOOK_UPS):
        began = perf_counter()
        http.get(f"/documents/person/{number % ROOTS}").raise_for_status()
        seconds.append(perf_counter() - began)
    units = float(store.read_units - before) / LOOK_UPS
    cuts = quantiles(seconds, n=100)
    price = units * float(DEFAULT.read)
    print(f"p50 {cuts[49] * 1000:.2f} ms, p99 {cuts[98] * 1000:.2f} ms, {units:.2f} read units, ${price:.3f} a million")


if __name__ == "__main__":
    main()
