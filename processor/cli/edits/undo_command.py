"""`statestore undo VERSION`: new edits that put back the definitions and the pauses as they were before a version."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from processor.cli.arguments import add_why, positive, reason
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.edit_report import print_applied, user_name
from processor.definitions.load import ENTITIES, load
from processor.errors import StatestoreError
from processor.plan.planning import check_after, requirements_of
from processor.records import canonical_json
from processor.settings.open_registry import open_registry
from registry.edits import operations
from registry.edits.edit import Signature
from registry.edits.undo import NoUndo, Reversal, reverse
from registry.model import Applied, Snapshot

if TYPE_CHECKING:
    from registry.repository import Registry


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("undo", help="put back the definitions and pauses as they were before a registry version")
    parser.add_argument("version", metavar="VERSION", type=positive, help="the version, as `history` shows it")
    add_why(parser)
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    why = f"undo of version {options.version}: {reason(options)}"
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        stored, has_run = registry.snapshot_for_apply()
        reversal = reverse(stored, registry.history(), options.version)
        kept = sorted({*reversal.added, *(has_run & reversal.entities.keys())})
        texts = _texts(stored, reversal, {name for name in reversal.entities if name not in has_run})
        made = [_apply(registry, stored, texts, settings.rejects_topic, why)] if texts else []
        made += _others(registry, reversal, why)
        if not made:
            raise NoUndo(
                options.version, f"a job has run with {' and '.join(kept)}, and its stored rows keep the change"
            )
        for name in kept:
            print(f"entity {name} stays as it is: other products and stored rows may need it", file=sys.stderr)
        changes = tuple(change for applied in made for change in applied.changes)
        print_applied(Applied(version=registry.snapshot().version, changes=changes), registry)
    return 0


def _texts(stored: Snapshot, reversal: Reversal, back: set[str]) -> dict[str, str]:
    """The files of the definitions to apply: all entities, those of `back` as they were, and the products as they were. Empty
    when there is nothing to apply."""
    if not (back or reversal.products):
        return {}
    entities = {one.name: one.definition for one in stored.entities} | {name: reversal.entities[name] for name in back}
    products = {f"products/{name}.json": definition for name, definition in reversal.products.items()}
    return {file: canonical_json.dumps(content) for file, content in {ENTITIES: entities, **products}.items()}


def _apply(registry: "Registry", stored: Snapshot, texts: dict[str, str], rejects_topic: str, why: str) -> Applied:
    definitions = load(texts)
    runs = check_after(definitions, rejects_topic)

    def check(before: Snapshot, after: Snapshot) -> None:
        if before.version > stored.version:
            raise StatestoreError("another edit came first: give the command again")
        runs(before, after)

    return registry.apply(requirements_of(definitions), who=user_name(), why=why, check=check)


def _others(registry: "Registry", reversal: Reversal, why: str) -> Iterator[Applied]:
    """Removes the products that the version added, with their documents, and reverses pauses."""
    by = Signature(user_name(), why)
    for name in reversal.removed:
        yield registry.operate(by, operations.remove, name, tombstones=True)
    for product, paused in reversal.paused.items():
        yield registry.operate(by, operations.pause, product, paused=paused)
    for topic, paused in reversal.topics.items():
        yield registry.operate(by, operations.pause_topic, topic, paused=paused)
