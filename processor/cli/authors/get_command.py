"""`statestore get`: shows one document, assembled from the state as it is now."""

import argparse
import sys
from collections import Counter
from time import time

from processor.cli.chosen_document import add_key, requested_document
from processor.cli.chosen_wait import chosen_wait
from processor.cli.options import REGISTRY, TABLE, add_settings, reachable_settings
from processor.cli.printing.document_text import add_pretty, document_text
from processor.cli.printing.output import UNFIT_LINE
from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.protocol.gates import wait_text
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.rounds.publish_stage import encoded_document
from processor.text import visible_line
from processor.tools.inspect.lineage import lineage, lost_lines
from processor.values import canonical_json


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "show a document, assembled from the state as it is now"
    parser = verbs.add_parser("get", help=text, usage="%(prog)s [flags] PRODUCT KEY")
    parser.add_argument("product", metavar="PRODUCT")
    add_key(parser, required=True)
    parser.add_argument("--json", action="store_true", help="print one JSON object with product, key, document, waits")
    add_pretty(parser)
    add_settings(parser, *REGISTRY, *TABLE)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, requested_document(options, settings) as requested:
        plan, product, root, runner = requested
        (body,) = runner.run([encoded_document(plan, product, root, Counter())])
        lost = list(lost_lines(runner.run([lineage(plan, product, root, {})])[0])) if _may_lack(plan, product) else []
        published = read_entry(runner.store.get([at := group_key(product.ledger, root)]).get(at), product.number)
        wait = chosen_wait(requested, body.value)
    if wait is not None:
        text = f"{options.product} {options.key}: {wait_text(wait, time())}; `statestore explain {options.product} KEY` says why"
        print(visible_line(text), file=sys.stderr)
    if published.unfit:
        text = f"{options.product} {options.key}: {UNFIT_LINE}"
        print(visible_line(text), file=sys.stderr)
    for line in lost:
        print(visible_line(f"{options.product} {options.key}: {line}"), file=sys.stderr)
    if options.json:
        document = None if body.value is None else canonical_json.loads(body.value)
        key = canonical_json.loads(body.key) if body.key else options.key
        found = {"product": options.product, "key": key, "document": document, "waits": wait is not None}
        print(visible_line(canonical_json.dumps(found)))
        return int(body.value is None)
    if body.value is None:
        why = f"`statestore explain {options.product} KEY` says why"
        print(visible_line(f"{options.product} has no document for {options.key}; {why}"), file=sys.stderr)
        return 1
    print(document_text(body.value, options))
    return 0


def _may_lack(plan: Plan, product: ProductPlan) -> bool:
    """Whether rows of the product may lack values because their entity keeps declared columns only."""
    names = {product.product.root, *(node.join.entity for node in product.nodes)}
    return not all(plan.entities[name].entity.keeps_undeclared for name in names)
