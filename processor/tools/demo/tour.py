"""The tour: five records of a small sample, their rows in the one table, the document that they make, and one change more.

It runs the steps of `statestore try` in this process, and needs no other program.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.text import table_lines
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from statestore import keys
from statestore.items import read_row

SAMPLE: Final = Path(__file__).parent / "sample"
"""The definitions of the tour, and its recorded topics."""


def tour_lines() -> Iterator[str]:
    """The tour as lines of text."""
    plan = plan_alone(load(read_directory(SAMPLE)), slots=Settings().slots)
    *records, change = read_records(str(SAMPLE / "topics.jsonl"))
    trial = Trial(plan=plan, settings=Settings(), consistent=True)
    yield "Before: five topics, one for each table of a source database."
    yield from _table(["topic", "record"], ([record.topic, _shortened(record)] for record in records))
    trial.batch(records)
    yield "How: each record becomes a row of one table. GSI_1 and GSI_2 hold what the joins look for."
    yield from _table(["PK", "SK", "GSI_1", "GSI_2"], (_row(trial, plan, record) for record in records))
    yield "After: one document. A query for GSI_1 = 'octocat' found the star and the pull request."
    yield from _members(trial)
    trial.batch([change])
    yield f"Then: topic {change.topic} brings another description, and the document follows."
    yield from (line for line in _members(trial) if "description" in line)


def _members(trial: Trial) -> Iterator[str]:
    """The members of the last document, a line each."""
    document = canonical_json.loads(trial.published.messages[-1].value or b"{}")
    yield from (f"  {name}: {canonical_json.dumps(value)}" for name, value in document.items())


def _shortened(record: Record) -> str:
    """The values of a record without its times."""
    values = canonical_json.loads(record.value or b"{}")
    return canonical_json.dumps({name: value for name, value in values.items() if not name.endswith("_at")})


def _row(trial: Trial, plan: Plan, record: Record) -> list[str]:
    """The keys and slots of the row that a record became."""
    entity, values = plan.entities[record.topic], canonical_json.loads(record.key or b"{}")
    key = entity.key(keys.encode([values[column] for column in entity.entity.key]) or "")
    slots = read_row(trial.store.get([key])[key]).slots
    held = [slots.get(number, "") for number in (1, 2)]
    return [*key, *held]


def _table(heading: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield from (f"  {line}" for line in table_lines([heading, *rows]))
