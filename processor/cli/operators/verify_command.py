"""`statestore verify`: compares published documents with the state, and with --sql also with the answer of the product's SQL over
the rows of the state. With --repair it publishes again the documents that differ from the state. With --source it
compares rows with the source database (`processor.cli.operators.verify_source`)."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random, randrange
from time import sleep
from uuid import uuid4

from processor.cli.arguments import positive
from processor.cli.chosen_plan import stored_state
from processor.cli.operators.verify_source import add_flags, run_source
from processor.cli.options import (
    KAFKA,
    REGISTRY,
    TABLE,
    add_settings,
    print_progress,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.difference_lines import difference_lines
from processor.cli.printing.output import UNFIT_LINE
from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import product_of
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.settings.open_registry import open_registry
from processor.environment.settings.owner_name import owner_name
from processor.environment.settings.resolve_secrets import resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.errors import SettingError
from processor.text import visible_line, visible_lines
from processor.tools.inspect.verification import (
    Difference,
    Mirror,
    NotCompared,
    TopicReader,
    VerificationResult,
    Verifier,
    with_open_changes,
)
from processor.values import canonical_json
from statestore.store import Store


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("verify", help="compare published documents with the state, and show those that differ")
    parser.add_argument(
        "products", metavar="PRODUCT", nargs="*", help="products to compare, with --source entities (all)"
    )
    parser.add_argument(
        "--sample", metavar="N", type=positive, help="compare N documents of each product (default: all)"
    )
    parser.add_argument("--seed", metavar="S", type=int, help="the same seed takes the same sample")
    parser.add_argument(
        "--sql",
        action="store_true",
        help="compare with the answer of the product's SQL too, over copies of all rows in the registry's Postgres. Documents "
        "of a row that Postgres cannot hold are named, with exit status 1",
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="publish again what differs from the state, while no job runs; with --source write rows",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    rare = add_flags(parser)
    add_settings(parser, *REGISTRY, *TABLE, *KAFKA, rare=rare)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    return run_source(options) if options.source else _run_documents(options)


def _run_documents(options: argparse.Namespace) -> int:
    seed = randrange(2**32) if options.seed is None else options.seed
    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        with stored_state(settings) as (plan, store):
            names = options.products or list(plan.products)
            random = Random(seed)
            with _verifier(settings, plan, store, options.sql) as verifier:
                verified = {name: _verify_product(verifier, settings, name, options.sample, random) for name in names}
            differences = [difference for result in verified.values() for difference in result.differences]
            not_compared = [document for result in verified.values() for document in result.not_compared]
            unfit = unfit_among(plan, store, differences)
            repaired = _repair(settings, plan, store, differences) if options.repair else 0
    if options.json:
        found = _json(verified, repaired, options.sql)
        print(visible_line(canonical_json.dumps(found | ({"seed": seed} if options.sample else {}))))
    else:
        for line in difference_lines(differences, options.sql):
            print(line)
        for difference in unfit:
            print(visible_line(f"{difference.product} {difference.key}: {UNFIT_LINE}"), file=sys.stderr)
        for document in not_compared:
            print(visible_lines([f"{document.product} {document.key}", f"  not compared with SQL: {document.reason}"]))
        for name, result in verified.items():
            without = f", {len(result.not_compared)} of them not with SQL" if result.not_compared else ""
            counts = f"{result.compared} documents compared{without}, {len(result.differences)} differ"
            missing = f", {result.unpublished} of them were never published" if result.unpublished else ""
            missing += f"; {result.waiting} wait at the gate of the product" if result.waiting else ""
            older = f"; {result.outdated} are of an older version of the product" if result.outdated else ""
            print(f"{name}: {counts}{missing}{older}", file=sys.stderr)
        if options.sample:
            print(f"this was a sample: --seed {seed} takes the same one", file=sys.stderr)
        if options.repair:
            print(f"{repaired} documents published again", file=sys.stderr)
    return 1 if len(differences) > repaired or any(d.refuted for d in differences) or not_compared else 0


@contextmanager
def _verifier(settings: Settings, plan: Plan, store: Store, sql: bool) -> Iterator[Verifier]:
    from processor.tools.inspect.oracle import oracle

    with ExitStack() as stack:
        runner = with_open_changes(StepRunner(store=store))
        mirror = None
        if sql:
            schema = f"statestore_verify_{uuid4().hex[:8]}"
            tables = stack.enter_context(oracle(settings.registry, schema, plan.declared_entities))
            mirror = Mirror(plan=plan, store=store, tables=tables, report=print_progress)
        yield Verifier(plan=plan, runner=runner, wait=lambda: sleep(settings.wait_seconds), mirror=mirror)


def _verify_product(
    verifier: Verifier, settings: Settings, name: str, sample: int | None, random: Random
) -> VerificationResult:
    from processor.job.kafka.reader import read_topic
    from processor.job.kafka.schemas import NO_REGISTRY, as_json

    planned = product_of(verifier.plan, name)
    product = planned.product
    topic: TopicReader = partial(read_topic, settings.bootstrap_servers, dict(settings.kafka), product.topic)
    if product.format == "avro":
        if not settings.schema_registry:
            raise SettingError(f"product {name}: {NO_REGISTRY}")
        access = resolve_schema_registry(settings.schema_registry)
        entities = verifier.plan.declared_entities
        return verifier.verify(planned, lambda: as_json(topic(), product, entities, access), sample, random)
    return verifier.verify(planned, topic, sample, random)


def unfit_among(plan: Plan, store: Store, differences: Iterable[Difference]) -> list[Difference]:
    """The differences whose document does not fit its topic, by the ledger."""
    keyed = [(group_key(plan.products[d.product].ledger, d.root), d) for d in differences if d.root is not None]
    items = store.get([key for key, _ in keyed])
    return [d for key, d in keyed if read_entry(items.get(key), plan.products[d.product].number).unfit]


def _repair(settings: Settings, plan: Plan, store: Store, differences: Iterable[Difference]) -> int:
    """Publishes the documents again that differ from the state, except those whose key is not a key of the root.

    Returns how many documents it published.
    """
    from processor.engine.rounds.follow_up_stages import RootToRepair
    from processor.tools.operate.repair import Repair

    roots = [RootToRepair((d.product, d.root), d.key) for d in differences if d.root is not None and d.stale]
    if not roots:
        return 0
    with open_registry(settings) as registry:
        repair = Repair(settings=settings, plan=plan, registry=registry, store=store, owner=owner_name())
        return repair.publish(roots)[Count.PUBLISHED]


def _json(verified: dict[str, VerificationResult], repaired: int, sql: bool) -> dict[str, object]:
    return {
        "products": {
            name: {
                "compared": result.compared,
                "unpublished": result.unpublished,
                "older_version": result.outdated,
                "waiting": result.waiting,
                "differences": [_difference(d, sql) for d in result.differences],
            }
            | ({"not_compared_with_sql": [_not_compared(d) for d in result.not_compared]} if sql else {})
            for name, result in verified.items()
        },
        "repaired": repaired,
    }


def _difference(difference: Difference, sql: bool) -> dict[str, object]:
    found = {"key": difference.key, "published": _value(difference.published), "state": _value(difference.state)}
    return found | ({"sql": _value(difference.sql)} if sql else {})


def _not_compared(document: NotCompared) -> dict[str, object]:
    return {"key": document.key, "reason": document.reason}


def _value(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return canonical_json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
