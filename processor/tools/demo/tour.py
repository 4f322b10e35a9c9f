"""The tour: five records of a small sample, their rows in the one table, the document that they make, and one change more.

It runs the steps of `statestore try` in this process, and needs no other program. And the output of the demo: one event and its
document, and the comparison of the published documents with the SQL answer.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.publish_stage import encoded_document
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.text import table_lines
from processor.values import canonical_json
from processor.values.record import Record, Value
from processor.values.recorded_topics import read_records
from registry.model import SlotPath
from statestore import keys
from statestore.items import entity_of_item, key_of_item, read_row, readable_attributes
from statestore.store import Store

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


LONGEST = 40
"""Lines that the report shows of a document."""


def describe_event(record: Record, plan: Plan, store: Store) -> Iterator[str]:
    """The change of a star, its stored row, the one query of its slot, and the resulting document, as lines of text."""
    star = canonical_json.loads(record.value or b"")
    entity = plan.entities["star"]
    key = entity.key(keys.encode([star[c] for c in entity.entity.key]) or "")
    yield f"1. The change: topic {record.topic}, partition {record.partition}, key {(record.key or b'').decode()}"
    yield from readable_lines(star)
    yield "2. Its row in the table:"
    yield from _attributes(store.get([key])[key])
    product = plan.products["user_profile"]
    node = next(n for n in product.nodes if n.join.name == "starred_repos")
    assert isinstance(node.down, SlotPath)
    query = plan.query("star", node.down, star["username"])
    found = Counter(map(entity_of_item, store.query(query)))
    yield f"3. The one query for all joins with the same slot and value: {query.slot} = '{query.value}'"
    yield "     " + ", ".join(f"{n} {name}" for name, n in sorted(found.items()))
    (root,) = store.query(plan.query("user", SlotPath(slot=_slot(plan, "user", "username")), star["username"]))[:1]
    (body,) = StepRunner(store=store).run([encoded_document(plan, product, key_of_item(root).sk, Counter())])
    yield f"4. The document: topic {product.product.topic}, key {body.key}"
    yield from readable_lines(canonical_json.loads(body.value or b"null"))


def differing_keys(published: Iterable[Record], truth: Mapping[str, Value]) -> list[str]:
    """The keys whose last message is not the oracle's answer in `truth`. Documents compare as values, numbers by value."""
    last = {(r.key or b"").decode(): None if r.value is None else canonical_json.loads(r.value) for r in published}
    wrong = [key for key, document in truth.items() if key not in last or last[key] != document]
    return wrong + [key for key, document in last.items() if document is not None and key not in truth]


def choose_star(records: Iterable[Record], tables: Mapping[str, Mapping[tuple[Any, ...], Any]]) -> Record:
    """The last record of a star whose row, user and repository all exist in `tables`. Raises LookupError if there is none."""
    users = {row["username"] for row in tables["user"].values()}
    for record in reversed(list(records)):
        if record.topic == "star" and record.value is not None and record.value.startswith(b"{"):
            star = canonical_json.loads(record.value)
            repo = (star.get("repo_owner"), star.get("repo_name"))
            key = (star.get("username"), repo[1], repo[0])
            if key in tables["star"] and repo in tables["repo"] and star["username"] in users:
                return record
    raise LookupError("no star has a row, a user and a repository")


def _slot(plan: Plan, entity: str, column: str) -> int:
    return next(slot for slot, columns in plan.entities[entity].slots.items() if columns == (column,))


def _attributes(item: Mapping[str, Any]) -> Iterator[str]:
    rows = [[name, str(value)] for name, value in readable_attributes(item).items()]
    yield from (f"     {line}" for line in table_lines(rows))


def readable_lines(value: Value) -> Iterator[str]:
    """A value as JSON with a line for each member; the first lines of a long value."""
    lines = json.dumps(value, indent=2, ensure_ascii=False, default=float).splitlines()
    yield from (f"     {line}" for line in lines[:LONGEST])
    if len(lines) > LONGEST:
        yield f"     ... {len(lines) - LONGEST} more lines"
