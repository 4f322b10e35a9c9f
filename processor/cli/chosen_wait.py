"""Whether the document that a verb shows waits at the gate of its product, and for what."""

from time import time

from processor.cli.chosen_document import RequestedDocument
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.ledger import group_key, hash_of, read_entry
from processor.engine.protocol.stored_roots import stored_roots
from processor.engine.protocol.wait import Wait, wait_of
from processor.engine.rounds.job_event import no_report
from processor.environment.settings.resolve_secrets import resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.job.kafka.schemas import open_schemas

MOST_READS = 20
"""Of a transaction topic: each takes a fifth of a second at most, and gives some thousand ends."""


def chosen_wait(requested: RequestedDocument, document: bytes | None, settings: Settings | None = None) -> Wait | None:
    """The wait of the document; None where it does not wait, or its last message shows it as it is now. `settings`: with the
    broker that has the ends of transactions; without it no end is known."""
    plan, product, sk, runner = requested
    held, root = stored_roots(plan, runner.store, time()), (product.product.name, sk)
    at = group_key(product.ledger, sk)
    entry = read_entry(runner.store.get([at]).get(at), product.number)
    if entry.shows(hash_of(document), product.version, product.product.topic):
        return None  # a portion may name the root for a while after its release
    if settings and settings.bootstrap_servers and root in held.held and held.blocker(root):
        _learn_ends(held, settings)
    return wait_of(held, root)


def _learn_ends(held: HeldRoots, settings: Settings) -> None:
    """Takes the ends that the transaction topics have now."""
    from processor.job.run.transaction_feed import transaction_feed

    feed = transaction_feed(settings, open_schemas(resolve_schema_registry(settings.schema_registry)), no_report)
    try:
        for topic, since in held.transactions.missing_ends().items():
            for _ in range(MOST_READS):
                held.take_ends(topic, ends := feed.ends(topic, since))
                if not ends:
                    break
    finally:
        feed.close()
