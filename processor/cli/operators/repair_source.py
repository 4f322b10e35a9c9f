"""Repairs rows from the source: sends a letter for each row that differs, and asks the job to replay them."""

import sys
from collections.abc import Sequence
from time import time_ns
from typing import TYPE_CHECKING

from processor.cli.operators.ask_for_replay import follow, living_job
from processor.cli.operators.stored_letters import read_stored_letters
from processor.cli.printing.edit_report import user_name
from processor.engine.plan.declared_columns import declared_columns
from processor.engine.plan.plan import Plan
from processor.engine.protocol.replays import letter_position
from processor.engine.rounds.shown_keys import shown_keys
from processor.environment.settings.open_registry import open_registry
from processor.environment.settings.settings import Settings
from processor.text import visible_line
from processor.values import canonical_json
from processor.values.dead_letters import DeadLetter, message_bytes, reject_message
from processor.values.record import Rejected
from statestore import keys
from statestore.store import Store

if TYPE_CHECKING:
    from processor.tools.source.compared_table import ComparedTable
    from processor.tools.source.comparison import ComparedEntity

SAMPLED = 100
"""Stored rows that show whether the connector sends a JSON column as text."""


def repair_from_source(
    settings: Settings, plan: Plan, store: Store, found: "Sequence[ComparedEntity]", why: str
) -> int:
    """Repairs the differences. Returns the exit status: 1 where a row is not repaired yet."""
    letters, left = _letters(settings, plan, store, found, why)
    for text in left:
        print(visible_line(f"not repaired: {text}"), file=sys.stderr)
    if not letters:
        return 1
    with open_registry(settings) as registry:
        _send(settings, letters)
        kept = [DeadLetter(rejected=one, kept_since=one.record.timestamp / 1000) for one in letters]
        places = [letter_position(one.record) for one in letters]
        number = registry.replays.repair(places, who=user_name(), why=why)
        job = living_job(registry, settings.job)
        if job is None:
            print(f"request {number}: no job runs, and its next run repairs {len(letters)} rows", file=sys.stderr)
            return 1
        reports = follow(registry, job, kept, number)
    for report in reports:
        if report.outcome == "refused":
            key = (report.record.key or b"").decode()
            print(visible_line(f"not repaired: {report.record.topic} {key}: {report.reason}"), file=sys.stderr)
    applied, newer = (sum(report.outcome == one for report in reports) for one in ("applied", "superseded"))
    failed = len(letters) - applied - newer + len(left)
    print(f"{applied} rows repaired, {newer} have a newer change or were erased, {failed} not repaired")
    return 1 if newer or failed else 0


def _send(settings: Settings, letters: Sequence[Rejected]) -> None:
    """Produces the letters to the topic of dead letters, and waits for the broker."""
    from processor.job.kafka.outbox import KafkaOutbox

    outbox = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka))
    for letter in letters:
        outbox.send(reject_message(letter, settings.rejects_topic))
    outbox.flush()


def _letters(
    settings: Settings, plan: Plan, store: Store, found: "Sequence[ComparedEntity]", why: str
) -> tuple[list[Rejected], list[str]]:
    """The letters, and why other rows get none."""
    from processor.job.kafka.admin import Admin
    from processor.job.run.dead_letters import letter_bytes
    from processor.tools.source.comparison import repair_letter

    limit = letter_bytes(Admin(settings.bootstrap_servers, dict(settings.kafka)), settings)
    waiting = _waiting(settings, plan)
    number, letters, left = time_ns() // 1000, list[Rejected](), list[str]()
    for entity in found:
        json_text = _json_text(store, entity.table)
        for one in (one for one in entity.differences if one.kind != "erased"):
            letter = repair_letter(one, entity.table, why, number + len(letters), json_text)
            at = waiting.get((one.entity, one.sk))
            if at is not None:
                letter = f"its dead letter {at} waits, and would undo the repair: replay or drop it first"
            elif isinstance(letter, Rejected) and message_bytes(reject_message(letter, settings.rejects_topic)) > limit:
                letter = f"topic {settings.rejects_topic} takes no message of that size: raise its max.message.bytes"
            if isinstance(letter, Rejected):
                letters.append(letter)
            else:
                left.append(f"{one.entity} {canonical_json.dumps(dict(one.key))}: {letter}")
    return letters, left


def _waiting(settings: Settings, plan: Plan) -> dict[tuple[str, str], str]:
    """(entity, encoded key) of the dead letters that wait -> the position of the record."""
    entities = {entity.entity.topic: entity.entity for entity in plan.entities.values()}
    found: dict[tuple[str, str], str] = {}
    for letter, outcome in read_stored_letters(settings):
        record = letter.rejected.record
        entity = entities.get(record.topic)
        if entity is not None and not outcome:
            at = f"{record.topic}/{record.partition}/{record.offset}"
            found |= {(entity.name, keys.encode(key) or ""): at for key in shown_keys(record, entity)}
    return found


def _json_text(store: Store, table: "ComparedTable") -> dict[str, bool]:
    """JSON columns -> whether stored rows hold them as text, for those that a sample shows."""
    names = [name for name, form in table.forms.items() if form.json]
    shown: dict[str, bool] = {}
    for partition in table.entity.partitions() if names else ():
        for item in store.page(partition, None, SAMPLED).items:
            columns = declared_columns(item, table.entity) or {}
            shown |= {name: isinstance(columns[name], str) for name in names if columns.get(name) is not None}
    return shown
