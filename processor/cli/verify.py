"""`statestore verify`: published documents against the state; with --repair those that differ are published anew."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random, randrange
from time import sleep

from processor.cli.job import need, owner_name
from processor.cli.options import add_settings, addressed
from processor.cli.plans import stored_plan
from processor.cli.trial import positive
from processor.lockstep import Lockstep
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
        verified = dict(_verify(settings, plan, store, names, options.sample, Random(seed)))
        differences = [difference for one in verified.values() for difference in one.differences]
        repaired = _repair(settings, plan, store, differences) if options.repair else 0
    if options.json:
        print(canonical_json.dumps(_json(verified, repaired) | ({"seed": seed} if options.sample else {})))
    else:
        for difference in differences:
            print("\n".join(_lines(difference)))
        for name, one in verified.items():
            print(f"{name}: {one.compared} documents compared, {len(one.differences)} differ", file=sys.stderr)
        if options.sample:
            print(f"a sample: --seed {seed} takes it again", file=sys.stderr)
        if options.repair:
            print(f"{repaired} documents published anew", file=sys.stderr)
    return 1 if len(differences) > repaired else 0


def _verify(
    settings: Settings, plan: Plan, store: Store, names: Iterable[str], sample: int | None, random: Random
) -> Iterator[tuple[str, Verified]]:
    from processor.kafka import read_topic

    with ThreadPoolExecutor(settings.threads) as pool:
        lockstep = overlaid(Lockstep(store=store, outbox=MemoryOutbox(), pool=pool))
        verifier = Verifier(plan=plan, lockstep=lockstep, wait=lambda: sleep(settings.wait_seconds))
        for name in names:
            product = product_of(plan, name)
            topic = partial(read_topic, settings.bootstrap_servers, dict(settings.kafka), product.product.topic)
            yield name, verifier.verify(product, topic, sample, random)


def _repair(settings: Settings, plan: Plan, store: Store, differences: Iterable[Difference]) -> int:
    """Publishes anew what differs; a message whose key is none of the root's is left. Returns how many went out."""
    from processor.repair import Doubted, Repair
    from registry.repository import Registry

    doubted = [Doubted(root=(d.product, d.root), key=d.key) for d in differences if d.root is not None]
    if not doubted:
        return 0
    registry = Registry(settings.registry, settings.registry_schema)
    repair = Repair(settings=settings, plan=plan, registry=registry, store=store, owner=owner_name())
    return repair.publish(doubted)["published"]


def _lines(difference: Difference) -> Iterator[str]:
    yield f"{difference.product} {difference.key}"
    yield f"  published {_text(difference.published)}"
    if difference.root is None:
        yield "  which is no key of the root: somebody else writes to this topic"
    else:
        yield f"  state     {_text(difference.state)}"


def _text(value: bytes | None) -> str:
    return "no document" if value is None else value.decode(errors="replace")


def _json(verified: dict[str, Verified], repaired: int) -> dict[str, object]:
    return {
        "products": {
            name: {"compared": one.compared, "differences": [_difference(d) for d in one.differences]}
            for name, one in verified.items()
        },
        "repaired": repaired,
    }


def _difference(difference: Difference) -> dict[str, object]:
    return {"key": difference.key, "published": _value(difference.published), "state": _value(difference.state)}


def _value(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return canonical_json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
