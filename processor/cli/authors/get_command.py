"""`statestore get`: shows one document, assembled from the state as it is now."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from processor.cli.chosen_plan import stored_state
from processor.cli.options import REGISTRY, TABLE, add_settings, reachable_settings
from processor.cli.printing.output import UNFIT_LINE
from processor.cli.printing.visible_text import visible_line
from processor.errors import StatestoreError
from processor.inspect.verification import with_open_changes
from processor.plan.plan import EntityPlan, Plan, ProductPlan
from processor.plan.planning import product_of
from processor.product.document_key import read_root_key
from processor.progress.ledger import entry_key, read_entry
from processor.records import canonical_json
from processor.rounds.publish_part import encoded_document
from processor.rounds.step_runner import StepRunner
from processor.settings.settings import Settings
from statestore import keys


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("get", help="show a document, assembled from the state as it is now")
    parser.add_argument("product", metavar="PRODUCT")
    add_key(parser, required=True)
    parser.add_argument("--json", action="store_true", help="print one JSON object: product, key and document")
    add_settings(parser, *REGISTRY, *TABLE)
    parser.set_defaults(run=run)


def add_key(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Adds the argument KEY."""
    text = 'the root\'s key: a JSON object ({"email": "a@example.org"}), or the value of a key with one column'
    parser.add_argument("key", metavar="KEY", nargs=None if required else "?", help=text)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, requested_document(options, settings) as requested:
        plan, product, root, runner = requested
        (body,) = runner.run([encoded_document(plan, product, root, Counter())])
        published = read_entry(runner.store.get([at := entry_key(options.product, root)]).get(at))
    if published.unfit:
        text = f"{options.product} {options.key}: {UNFIT_LINE}"
        print(visible_line(text), file=sys.stderr)
    if options.json:
        document = None if body.value is None else canonical_json.loads(body.value)
        key = canonical_json.loads(body.key) if body.key else options.key
        print(visible_line(canonical_json.dumps({"product": options.product, "key": key, "document": document})))
        return int(body.value is None)
    if body.value is None:
        print(f"{options.product} has no document for {options.key}", file=sys.stderr)
        return 1
    print(visible_line(body.value.decode()))
    return 0


class RequestedDocument(NamedTuple):
    """The document that the user asks for: plan, product, and the root's encoded key. `runner`: lays the open changes over
    index answers, as a job does."""

    plan: Plan
    product: ProductPlan
    root: str
    runner: StepRunner


@contextmanager
def requested_document(options: argparse.Namespace, settings: Settings) -> Iterator[RequestedDocument]:
    """The document that PRODUCT and KEY name, inside the block. Raises StatestoreError if there is no such product, or KEY is not
    a key."""
    with stored_state(settings) as (plan, store):
        product = product_of(plan, options.product)
        root = _root_key(plan.entities[product.product.root], options.key)
        yield RequestedDocument(plan, product, root, with_open_changes(StepRunner(store=store)))


def _root_key(root: EntityPlan, text: str) -> str:
    """The encoded primary key that the text names."""
    try:
        return keys.encode(read_root_key(root.entity, text)) or ""
    except ValueError as error:
        raise StatestoreError(str(error)) from None
