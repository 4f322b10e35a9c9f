"""`statestore remove`, `republish`, `pause`, `resume`, `retire` and `move`: the edits of an operator, which a running job takes
before its next batch."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from processor.cli.arguments import add_why, reason, slot_number
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.edit_report import print_applied, user_name
from processor.environment.settings.resolve import open_registry
from processor.errors import SettingError, StatestoreError
from processor.language.definitions.problems import suggest
from registry.edits import operations
from registry.edits.edit import Signature
from registry.edits.operations import NoTopic
from registry.errors import NoAssignment, NoProduct
from registry.model import Applied, Snapshot

if TYPE_CHECKING:
    from registry.repository import Registry

MakeEdit = Callable[["Registry", argparse.Namespace], Applied]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    remove = _add_verb(verbs, "remove", "remove a product: at once, or after its documents (--tombstones)", _remove)
    remove.add_argument("product", metavar="PRODUCT")
    remove.add_argument(
        "--tombstones", action="store_true", help="let the job replace all documents by tombstones first"
    )
    republish = _add_verb(verbs, "republish", "let the job publish all documents of a product again", _republish)
    republish.add_argument("product", metavar="PRODUCT")
    pause = _add_verb(
        verbs, "pause", "let the job publish nothing of a product, or read no topic, or nothing at all", _pause
    )
    resume = _add_verb(verbs, "resume", "end a pause: the job publishes all that the product missed", _resume)
    for parser in (pause, resume):
        parser.add_argument("product", metavar="PRODUCT", nargs="?", help="the product (default: all work)")
        parser.add_argument("--topic", metavar="TOPIC", help="the topic of an entity, in place of a product")
    retire = _add_verb(verbs, "retire", "give up a slot that no product uses: the job frees it", _retire)
    move = _add_verb(verbs, "move", "move the columns of a slot, with its joins, to a free slot", _move)
    for parser in (retire, move):
        parser.add_argument("entity", metavar="ENTITY")
        parser.add_argument("slot", metavar="GSI_n", type=slot_number)
    move.add_argument("target", metavar="GSI_m", type=slot_number, help="a free slot")


def _add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, help: str, make: MakeEdit
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=help)
    add_why(parser)
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run, make=make)
    return parser


def run(options: argparse.Namespace) -> int:
    """Makes the edit, and prints it. The error of an unknown product or slot names the nearest ones."""
    reason(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        try:
            applied = options.make(registry, options)
        except NoProduct as error:
            stored = registry.snapshot()
            known = sorted({one.name for one in (*stored.products, *stored.waiting)})
            raise StatestoreError(f"{error}; {suggest(error.name, known)}") from None
        except NoTopic as error:
            known = sorted(one.topic for one in registry.snapshot().entities)
            raise StatestoreError(f"{error}; {suggest(error.topic, known)}") from None
        except NoAssignment as error:
            raise StatestoreError(f"{error}; {_near_slots(registry.snapshot(), options.entity)}") from None
        print_applied(applied, registry)
    return 0


def _near_slots(stored: Snapshot, entity: str) -> str:
    known = [one.name for one in stored.entities]
    if entity not in known:
        return f"there is no entity `{entity}`; {suggest(entity, known)}"
    held = [f"GSI_{one.slot} {'#'.join(one.columns)}" for one in stored.assignments_of(entity)]
    return f"{entity} has {', '.join(held) or 'no slots'}"


def _signed(options: argparse.Namespace) -> Signature:
    return Signature(user_name(), reason(options))


def _remove(registry: "Registry", options: argparse.Namespace) -> Applied:
    return registry.operate(_signed(options), operations.remove, options.product, tombstones=options.tombstones)


def _republish(registry: "Registry", options: argparse.Namespace) -> Applied:
    return registry.operate(_signed(options), operations.republish, options.product)


def _pause(registry: "Registry", options: argparse.Namespace) -> Applied:
    if _topic(options):
        return registry.operate(_signed(options), operations.pause_topic, options.topic, paused=True)
    return registry.operate(_signed(options), operations.pause, options.product, paused=True)


def _resume(registry: "Registry", options: argparse.Namespace) -> Applied:
    if _topic(options):
        return registry.operate(_signed(options), operations.pause_topic, options.topic, paused=False)
    return registry.operate(_signed(options), operations.pause, options.product, paused=False)


def _topic(options: argparse.Namespace) -> bool:
    """Whether the user names a topic. Raises SettingError for a product and a topic."""
    if options.topic and options.product:
        raise SettingError(f"give {options.product} or --topic {options.topic}, not both")
    return bool(options.topic)


def _retire(registry: "Registry", options: argparse.Namespace) -> Applied:
    return registry.operate(_signed(options), operations.retire, options.entity, options.slot)


def _move(registry: "Registry", options: argparse.Namespace) -> Applied:
    return registry.operate(_signed(options), operations.move, options.entity, options.slot, options.target)
