"""What the demo prints: one event followed through, the documents compared, the counts."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from processor.batch import document_body
from processor.lockstep import Lockstep
from processor.model import canonical_json
from processor.model.access import SlotRead
from processor.model.change import Record, Value
from processor.model.plan import Plan
from processor.trial import MemoryOutbox
from statestore import keys
from statestore.store import Store


def followed(record: Record, plan: Plan, store: Store) -> Iterator[str]:
    """A star's change, its stored row, the one query of its slot, and the document that came of it."""
    star = canonical_json.loads(record.value or b"")
    entity = plan.entities["star"]
    key = entity.key(keys.spell([star[c] for c in entity.entity.key]) or "")
    yield f"1. The change: topic {record.topic}, partition {record.partition}, key {(record.key or b'').decode()}"
    yield from _wrapped(canonical_json.dumps(star))
    yield "2. Its row in the table:"
    yield from _table(store.get([key])[key])
    product = plan.products["user_profile"]
    node = next(n for n in product.nodes if n.join.name == "starred_repos")
    assert isinstance(node.down, SlotRead)
    query = plan.query("star", node.down, star["username"])
    found = Counter(keys.entity_of(item["PK"]) for item in store.query(query))
    yield f"3. The one query for all that shares its slot: {query.slot} = '{query.value}'"
    yield "     " + ", ".join(f"{n} {name}" for name, n in sorted(found.items()))
    (root,) = store.query(plan.query("user", SlotRead(slot=_slot(plan, "user", "username")), star["username"]))[:1]
    (body,) = Lockstep(store=store, outbox=MemoryOutbox()).run([document_body(plan, product, root["SK"], Counter())])
    yield f"4. The document: topic {product.product.topic}, key {body.key}"
    yield from _wrapped((body.value or b"null").decode())


def different(published: Iterable[Record], truth: Mapping[str, Value]) -> list[str]:
    """The keys whose last message is not the oracle's answer. Documents compare as values, numbers by value."""
    last = {(r.key or b"").decode(): None if r.value is None else canonical_json.loads(r.value) for r in published}
    wrong = [key for key, document in truth.items() if key not in last or last[key] != document]
    return wrong + [key for key, document in last.items() if document is not None and key not in truth]


def followable(records: Iterable[Record], tables: Mapping[str, Mapping[tuple[Any, ...], Any]]) -> Record:
    """The last star that is still there, of a user who is, and whose repository has a row."""
    users = {row["username"] for row in tables["user"].values()}
    for record in reversed(list(records)):
        if record.topic == "star" and record.value is not None and record.value.startswith(b"{"):
            star = canonical_json.loads(record.value)
            place = (star.get("repo_owner"), star.get("repo_name"))
            whole = (star.get("username"), place[1], place[0])
            if whole in tables["star"] and place in tables["repo"] and star["username"] in users:
                return record
    raise LookupError("no star to follow")


def _slot(plan: Plan, entity: str, column: str) -> int:
    return next(slot for slot, held in plan.entities[entity].slots.items() if held == (column,))


def _table(item: Mapping[str, Any]) -> Iterator[str]:
    names = [n for n in item if not n.startswith("_f")]
    names.sort(key=lambda n: (n not in ("PK", "SK"), not n.startswith("GSI_"), n))
    width = max(map(len, names))
    for name in names:
        yield f"     {name:<{width}}  {item[name]}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent="     ", subsequent_indent="     ", max_lines=12)
