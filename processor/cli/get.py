"""`statestore get`: one document as the state has it now."""

import argparse
import sys
from collections import Counter
from typing import NamedTuple

from processor.batch import document_body
from processor.cli.options import add_settings, addressed
from processor.cli.plans import stored_plan
from processor.errors import StatestoreError
from processor.lockstep import Lockstep
from processor.model.plan import EntityPlan, Plan, ProductPlan
from processor.model.root_key import read_root_key
from processor.planning import product_of
from processor.settings import Settings
from processor.trial import MemoryOutbox
from processor.verify import overlaid
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
    with addressed(options) as settings:
        asked = asked_of(options, settings)
        (body,) = asked.lockstep.run([document_body(asked.plan, asked.product, asked.root, Counter())])
    if body.value is None:
        print(f"{options.product} has no document for {options.key}", file=sys.stderr)
        return 1
    print(body.value.decode())
    return 0


class Asked(NamedTuple):
    """A document that is asked for, and what reads it: open changes are laid over index answers, as a job would."""

    plan: Plan
    product: ProductPlan
    root: str
    lockstep: Lockstep


def asked_of(options: argparse.Namespace, settings: Settings) -> Asked:
    """The document that PRODUCT and KEY name."""
    from processor.worker import open_store

    plan = stored_plan(settings)
    product = product_of(plan, options.product)
    root = _root_key(plan.entities[product.product.root], options.key)
    return Asked(plan, product, root, overlaid(Lockstep(store=open_store(settings), outbox=MemoryOutbox())))


def _root_key(root: EntityPlan, text: str) -> str:
    """The spelt primary key that the text names."""
    try:
        return keys.spell(read_root_key(root.entity, text)) or ""
    except ValueError as error:
        raise StatestoreError(str(error)) from None
