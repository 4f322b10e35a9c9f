"""`statestore verify`: published documents against the state, with --sql also against what SQL answers over its rows; with
--repair those that differ from the state are published anew."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random, randrange
from time import sleep
from uuid import uuid4

from processor.cli.job import need, owner_name
from processor.cli.options import add_settings, addressed, say
from processor.cli.plans import stored_plan
from processor.cli.trial import positive
from processor.lockstep import Lockstep
from processor.mirror import Mirror
from processor.model import canonical_json
from processor.model.plan import Plan
from processor.planning import product_of
from processor.settings import Settings
from processor.trial import MemoryOutbox
from processor.verify import Difference, Verified, Verifier, overlaid
from statestore.store import Store


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("verify", help="compare published documents with the state; show those that differ")
    parser.add_argument("products", metavar="PRODUCT", nargs="*", help="default: all")
    parser.add_argument("--sample", metavar="N", type=positive, help="N documents of each product (default: all)")
    parser.add_argument("--seed", metavar="S", type=int, help="takes the same sample again")
    parser.add_argument(
        "--sql",
        action="store_true",
        help="also with what the product's SQL answers over the state's rows: reads all rows of its entities, with --sample "
        "too, into a schema of the registry's Postgres that goes at the end",
    )
    parser.add_argument("--repair", action="store_true", help="publish those that differ anew; no job may be running")
    parser.add_argument("--json", action="store_true")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.worker import open_store

    seed = randrange(2**32) if options.seed is None else options.seed
    with addressed(options) as settings:
        need(settings, "bootstrap_servers")
        plan = stored_plan(settings)
        store = open_store(settings)
        names = options.products or list(plan.products)
        random = Random(seed)
        with _verifier(settings, plan, store, options.sql) as verifier:
            verified = {name: _verified(verifier, settings, name, options.sample, random) for name in names}
        differences = [difference for one in verified.values() for difference in one.differences]
        repaired = _repair(settings, plan, store, differences) if options.repair else 0
    if options.json:
        found = _json(verified, repaired, options.sql)
        print(canonical_json.dumps(found | ({"seed": seed} if options.sample else {})))
    else:
        for difference in differences:
            print("\n".join(_lines(difference, options.sql)))
        for name, one in verified.items():
            print(f"{name}: {one.compared} documents compared, {len(one.differences)} differ", file=sys.stderr)
        if options.sample:
            print(f"a sample: --seed {seed} takes it again", file=sys.stderr)
        if options.repair:
            print(f"{repaired} documents published anew", file=sys.stderr)
    return 1 if len(differences) > repaired or any(d.refuted for d in differences) else 0


@contextmanager
def _verifier(settings: Settings, plan: Plan, store: Store, sql: bool) -> Iterator[Verifier]:
    from processor.oracle import oracle

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(settings.threads))
        lockstep = overlaid(Lockstep(store=store, outbox=MemoryOutbox(), pool=pool))
        mirror = None
        if sql:
            entities = {name: entity.entity for name, entity in plan.entities.items()}
            schema = f"statestore_verify_{uuid4().hex[:8]}"
            tables = stack.enter_context(oracle(settings.registry, schema, entities))
            mirror = Mirror(plan=plan, store=store, tables=tables, report=say)
        yield Verifier(plan=plan, lockstep=lockstep, wait=lambda: sleep(settings.wait_seconds), mirror=mirror)


def _verified(verifier: Verifier, settings: Settings, name: str, sample: int | None, random: Random) -> Verified:
    from processor.kafka import read_topic

    product = product_of(verifier.plan, name)
    topic = partial(read_topic, settings.bootstrap_servers, dict(settings.kafka), product.product.topic)
    return verifier.verify(product, topic, sample, random)


def _repair(settings: Settings, plan: Plan, store: Store, differences: Iterable[Difference]) -> int:
    """Publishes anew what differs from the state, but for keys that are none of the root's. Returns how many went out."""
    from processor.repair import Doubted, Repair
    from registry.repository import Registry

    doubted = [Doubted(root=(d.product, d.root), key=d.key) for d in differences if d.root is not None and d.stale]
    if not doubted:
        return 0
    with Registry(settings.registry, settings.registry_schema) as registry:
        repair = Repair(settings=settings, plan=plan, registry=registry, store=store, owner=owner_name())
        return repair.publish(doubted)["published"]


def _lines(difference: Difference, sql: bool) -> Iterator[str]:
    yield f"{difference.product} {difference.key}"
    yield f"  published {_text(difference.published)}"
    if difference.root is None:
        yield "  which is no key of the root: somebody else writes to this topic"
    else:
        yield f"  state     {_text(difference.state)}"
        if sql:
            yield f"  sql       {_text(difference.sql)}"


def _text(value: bytes | None) -> str:
    return "no document" if value is None else value.decode(errors="replace")


def _json(verified: dict[str, Verified], repaired: int, sql: bool) -> dict[str, object]:
    return {
        "products": {
            name: {"compared": one.compared, "differences": [_difference(d, sql) for d in one.differences]}
            for name, one in verified.items()
        },
        "repaired": repaired,
    }


def _difference(difference: Difference, sql: bool) -> dict[str, object]:
    found = {"key": difference.key, "published": _value(difference.published), "state": _value(difference.state)}
    return found | ({"sql": _value(difference.sql)} if sql else {})


def _value(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return canonical_json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
