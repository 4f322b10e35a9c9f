"""A shop with some hundred orders behind a console, for its screenshots. The registry, the table and the documents are real; the
report of a job, its landing and its dead letters are staged."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import time
from typing import Any, Final

from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.decode import decode
from processor.engine.protocol.identity import write_identity
from processor.engine.protocol.replays import kept_letter
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.estimate import take_statistics
from processor.tools.web.console.screen import SlotWidening
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record, Rejected
from registry.edits import operations
from registry.edits.edit import Signature
from registry.model import Lease, Progress
from registry.repository import Registry
from statestore.store import Store
from tests.integration.web.console.conftest import JOB, ConsoleScene
from tests.screenshots.staged_report import staged_report

SHOP: Final = Path(__file__).parents[2] / "examples" / "orders"
CUSTOMERS, ORDERS, ARTICLES = 40, 160, 12
NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Radia", "Tony", "Frances")
BEFORE = {"customer_orders.yaml": ("fields: [id, name]", "fields: [id]")}
"""What the first version of a product had, and what took its place."""


@contextmanager
def shop_scene(url: str, schema: str) -> Iterator[tuple[ConsoleScene, Mapping[bytes, Any]]]:
    """The shop over a Postgres server, with a slot that the job fills and a version of a product that goes out; and the documents
    of customers that its topic has, by their keys."""
    settings = Settings(registry=url, registry_schema=schema, store="postgres", store_url=url, table=f"t_{schema}")
    with Registry(url, schema) as registry:
        registry.migrate(6)
        texts = read_directory(SHOP)
        first = texts | {name: texts[name].replace(new, old) for name, (new, old) in BEFORE.items()}
        registry.apply(requirements_of(load(first)), who="grace", why="documents for the shop")
        store, bound = open_store(settings), registry.binding()
        with closing(store):
            store.create(6)
            store.write(write_identity(bound.identity))
            registry.bind(replace(bound, job=JOB, table=settings.place))
            published = _fill(registry, store, settings)
            lease = registry.take_lease(JOB, "etl-3/4211", 2, take_over=False, expires_after=3_600)
            _edit(registry, lease, texts)
            registry.runs.keep_report(lease, staged_report(time(), registry.snapshot().version))
            kept, widening = list(_letters(registry)), SlotWidening(settings)
            registry.letters.keep([kept_letter(one.rejected, one.kept_since) for one in kept])
            scene = ConsoleScene(settings=settings, registry=registry, store=store, widening=widening, kept=kept)
            with scene.open:
                yield scene, published


def _fill(registry: Registry, store: Store, settings: Settings) -> Mapping[bytes, Any]:
    """Lets a job write the rows and publish the documents, and counts the rows. Returns the documents of customers."""
    plan = plan_of(registry.snapshot())
    trial = Trial(plan=plan, settings=settings, other_store=store)
    trial.batch(list(_records(Random(7))))
    trial.finish()
    taken = take_statistics(plan, store, sample=500, random=Random(7), at=datetime.now(UTC) - timedelta(hours=3))
    registry.statistics.keep(taken)
    messages = [one for one in trial.published.messages if one.topic == "customer_orders"]
    return {one.key or b"": json.loads(one.value or b"null") for one in messages}


def _edit(registry: Registry, lease: Lease, texts: dict[str, str]) -> None:
    """Another version goes live, and then a slot moves, whose fill is half done."""
    registry.apply(requirements_of(load(texts)), who="grace", why="readers want the name")
    _steps(registry, lease, 4)
    signature = Signature("lin", "GSI_1 is for invoices")
    (held,) = (one for one in registry.snapshot().assignments_of("order_line") if one.columns == ("order_id",))
    registry.operate(signature, operations.move, entity="order_line", slot=held.slot, target=5)
    _steps(registry, lease, 2)
    fill = Progress(walk="fill order_line", rows=212, written=212, of=431, done=False, seconds=41.0)
    registry.keep_progress([fill])


def _steps(registry: Registry, lease: Lease, count: int) -> None:
    """The job applies the registry's version and takes this many steps."""
    for _ in range(count):
        version = registry.snapshot().version
        registry.applied(lease, version)
        registry.advance(lease, version, proven=("customer", "order"), published=("customer_orders",))
    registry.applied(lease, registry.snapshot().version)


def _records(random: Random) -> Iterator[Record]:
    for n in range(1, ARTICLES + 1):
        yield _record("article", n, {"id": n}, {"id": n, "name": f"Article {n}"})
    for n in range(1, CUSTOMERS + 1):
        row = {"id": n, "name": f"{random.choice(NAMES)} {n}", "country": random.choice(("GB", "NL", "US", "DE"))}
        yield _record("customer", n, {"id": n}, row)
    for n in range(1, ORDERS + 1):
        placed = f"2026-11-{1 + n % 24:02d}T09:{n % 60:02d}:00Z"
        row = {
            "id": n,
            "customer_id": random.randint(1, CUSTOMERS),
            "status": random.choice(("placed", "paid", "sent")),
        }
        yield _record("order", n, {"id": n}, row | {"placed_at": placed})
        for number in range(1, random.randint(2, 5)):
            line = {"article_id": random.randint(1, ARTICLES), "quantity": random.randint(1, 4), "price": 4.5 * number}
            key = {"order_id": n, "number": number}
            yield _record("order_line", 10 * n + number, key, key | line)


def _letters(registry: Registry) -> Iterator[DeadLetter]:
    """Records that no declared column takes."""
    plan, now = plan_of(registry.snapshot()), time()
    wrong: list[tuple[str, dict[str, Any]]] = [
        *(("order_line", {"order_id": n, "number": 1, "quantity": "two"}) for n in range(40, 44)),
        *(("order", {"id": n, "placed_at": "yesterday"}) for n in range(60, 62)),
        ("customer", {"name": "Nobody"}),
    ]
    for n, (topic, row) in enumerate(wrong):
        refused = decode(_record(topic, 2_000 + n, {}, row), plan.entities[topic].entity)
        assert isinstance(refused, Rejected)
        yield DeadLetter(rejected=refused, kept_since=now - 600 * n - 95)


def _record(topic: str, offset: int, key: dict[str, Any], value: dict[str, Any]) -> Record:
    at = int(time() * 1_000)
    body = (json.dumps(key).encode() if key else None, json.dumps(value).encode())
    return Record(topic=topic, partition=0, offset=offset, epoch=1, timestamp=at, key=body[0], value=body[1])
