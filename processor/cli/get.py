"""`statestore get`: one document as the state has it now."""

import argparse
import sys
from collections import Counter

from processor.batch import document_body
from processor.cli.options import add_settings, addressed
from processor.cli.plans import stored_plan
from processor.errors import StatestoreError
from processor.lockstep import Lockstep
from processor.model.plan import EntityPlan
from processor.model.root_key import read_root_key
from processor.planning import product_of
from processor.trial import MemoryOutbox
from statestore import keys


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("get", help="show a document as the state has it now")
    parser.add_argument("product")
    add_key(parser, required=True)
    add_settings(parser)
    parser.set_defaults(run=run)


def add_key(parser: argparse.ArgumentParser, *, required: bool) -> None:
    what = 'the root\'s key: a JSON object ({"email": "a@example.org"}), or its one value'
    parser.add_argument("key", metavar="KEY", nargs=None if required else "?", help=what)


def run(options: argparse.Namespace) -> int:
    from processor.worker import open_store

    with addressed(options) as settings:
        plan = stored_plan(settings)
        product = product_of(plan, options.product)
        root = root_key(plan.entities[product.product.root], options.key)
        lockstep = Lockstep(store=open_store(settings), outbox=MemoryOutbox())
        (body,) = lockstep.run([document_body(plan, product, root, Counter())])
    if body.value is None:
        print(f"{options.product} has no document for {options.key}", file=sys.stderr)
        return 1
    print(body.value.decode())
    return 0


def root_key(root: EntityPlan, text: str) -> str:
    """The spelt primary key that the text names."""
    try:
        return keys.spell(read_root_key(root.entity, text)) or ""
    except ValueError as error:
        raise StatestoreError(str(error)) from None
