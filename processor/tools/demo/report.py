"""The output of the demo: one event and its document, and the comparison of the published documents with the SQL answer."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.rounds.publish_stage import encoded_document
from processor.engine.rounds.step_runner import StepRunner
from processor.text import table_lines
from processor.values import canonical_json
from processor.values.record import Record, Value
from registry.model import SlotPath
from statestore import keys
from statestore.items import entity_of_item, key_of_item, readable_attributes
from statestore.store import Store

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
    yield from _table(store.get([key])[key])
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


def _table(item: Mapping[str, Any]) -> Iterator[str]:
    rows = [[name, str(value)] for name, value in readable_attributes(item).items()]
    yield from (f"     {line}" for line in table_lines(rows))


def readable_lines(value: Value) -> Iterator[str]:
    """A value as JSON with a line for each member; the first lines of a long value."""
    lines = json.dumps(value, indent=2, ensure_ascii=False, default=float).splitlines()
    yield from (f"     {line}" for line in lines[:LONGEST])
    if len(lines) > LONGEST:
        yield f"     ... {len(lines) - LONGEST} more lines"
