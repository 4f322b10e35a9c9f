"""The dead letters of a job, with what became of each."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from processor.cli.chosen_plan import stored_state
from processor.cli.operators.dead_letter_choice import is_chosen
from processor.cli.options import require_settings
from processor.engine.protocol.replays import PARTITION
from processor.job.run.dead_letters import with_fates
from processor.values.record import Record
from statestore.store import Item

if TYPE_CHECKING:
    from processor.environment.settings.settings import Settings
    from processor.values.dead_letters import DeadLetter


def read_stored_letters(settings: "Settings") -> "list[tuple[DeadLetter, str]]":
    """The dead letters of the rejects topic, each with the outcome of its replay or drop; the outcome is empty while it waits."""
    from processor.job.kafka.reader import read_topic
    from processor.values.dead_letters import read_dead_letters

    require_settings(settings, "bootstrap_servers")
    foreign: list[Record] = []
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.rejects_topic)
    found = read_dead_letters(records, foreign)
    if foreign:
        first = f"the first is {settings.rejects_topic}/{foreign[0].partition} offset {foreign[0].offset}"
        print(f"{len(foreign)} messages of {settings.rejects_topic} are no dead letters; {first}", file=sys.stderr)
    items: list[Item] = []
    if found:
        with stored_state(settings) as (_, store):
            items = store.partition(PARTITION)
    return with_fates(found, items)


def waiting_letters(options: argparse.Namespace, settings: "Settings") -> "Iterator[DeadLetter]":
    """The dead letters of the selection that wait."""
    for letter, outcome in read_stored_letters(settings):
        if not outcome and is_chosen(options, letter):
            yield letter
