"""Documents and rows by key: a document by the present state, with the published one, their difference, what it waits for, and
the row of each field; a row with its slots, its former keys and its open changes.

The table keeps no published text and no times, so the broker says both. A page never reads a whole topic: it looks for the
published document among the last messages of the topic.
"""

from collections.abc import Mapping
from time import time
from typing import Any, Final, NamedTuple

from processor.engine.protocol.gates import wait_lines
from processor.environment.settings.resolve import resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError, SchemaRegistryAway, SettingError
from processor.job.kafka.reader import read_record, read_sample
from processor.job.kafka.schemas import NO_REGISTRY, as_json
from processor.language.product.product import Product
from processor.text import duration_text
from processor.tools.web.answers import LookUpProblem
from processor.tools.web.console.screen import (
    ANSWER_SECONDS,
    ConsoleParts,
    Content,
    Screen,
    Visit,
    diff_rows,
    value_lines,
)
from processor.tools.web.serve.reader import FoundDocument, StateReader
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import Record

MOST_KEYS: Final = 20
"""Keys that a page proposes."""
FRESH_SECONDS: Final = 5.0
"""For these seconds the console shows an answer of the broker without another look."""
MOST_OPEN: Final = 5
"""Open changes of a row that a page shows: each is a record that the broker looks up."""


def show_document(parts: ConsoleParts, visit: Visit) -> Content:
    """The document of a key, or the way to one."""
    reader = parts.open_reader()
    products = reader.products()
    product, key = visit.asked("product"), visit.key("key")
    if not product and len(products) == 1:
        product = products[0]["product"]
    content: dict[str, Any] = {"products": products, "product": product, "key": key, "proposed": []}
    content |= {"absent": "", "document": None, "lineage": None}
    if product:
        content["proposed"] = reader.keys(product, "" if key.startswith("{") else key, MOST_KEYS)
    if product and key:
        content |= _looked_up(parts, reader, product, key)
        content["key"] = _line(reader.root(product), key)
    return content


def show_row(parts: ConsoleParts, visit: Visit) -> Content:
    """The stored row of a key, or of the encoded key `at`; or the way to one."""
    reader = parts.open_reader()
    entity, key = visit.asked("entity"), visit.key("key")
    content: dict[str, Any] = {
        "entities": sorted(reader.plan().entities),
        "entity": entity,
        "key": key,
        "row": None,
        "open": [],
        "absent": "",
    }
    at = visit.key("at")
    if entity and (key or at):
        try:
            content["row"] = row = _short(reader.row_at(entity, at) if at else reader.row(entity, key))
            content["key"] = _line(reader.entity(entity), key)
            content["open"] = _open_changes(parts, reader, row)
        except LookUpProblem as problem:
            content["absent"] = str(problem)
    return content


def _looked_up(parts: ConsoleParts, reader: StateReader, product: str, key: str) -> dict[str, Any]:
    """The document with its lineage; without a document the reason."""
    try:
        found = reader.document(product, key)
    except LookUpProblem as problem:
        if problem.status != 404 or "sequence" not in problem.more:
            return {"absent": str(problem), "lineage": None}
        traced = reader.lineage(product, key)
        return {"absent": traced["reason"] or str(problem), "lineage": traced}
    value = canonical_json.loads(found.value)
    published = None if found.published else _published(parts, reader, product, found, value)
    return {
        "absent": "",
        "document": {
            "lines": value_lines(value),
            "bytes": len(found.value),
            "sequence": found.sequence,
            "published": published is None or published["same"],
            "waits": list(wait_lines(found.wait, time())) if found.wait else [],
            "age": None if found.age is None else duration_text(found.age),
        },
        "published": published,
        "lineage": reader.lineage(product, key),
    }


def _published(
    parts: ConsoleParts, reader: StateReader, product: str, found: FoundDocument, now: Any
) -> dict[str, Any]:
    """The published document where the ledger does not know it as the present one, with their difference. The ledger counts
    Avro by its bytes, so `same` says whether the message shows the present document."""
    plan = reader.plan()
    key = found.key.encode() if isinstance(found.key, str) else found.key
    message = _message(parts, plan.products[product].product, plan.declared_entities, key)
    return {
        "found": message.found,
        "same": message.found and message.value == now,
        "why": message.why,
        "tombstone": message.found and message.value is None,
        "lines": value_lines(message.value),
        "diff": diff_rows(message.value, now) if message.found else [],
    }


def _open_changes(parts: ConsoleParts, reader: StateReader, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The open changes of a row, the newest first, each with the age of its record."""
    found = reader.open_changes(row["entity"], row["key"])[:MOST_OPEN]
    return [one | {"age": _age(parts, one["origin"])} for one in found]


def _age(parts: ConsoleParts, origin: Mapping[str, Any]) -> str:
    place = (origin["topic"], origin["partition"], origin["offset"])
    known = parts.broker.ask(("record", *place), lambda: record_age(parts.settings, origin), FRESH_SECONDS)
    return f"unknown: {known.why}" if known.why else known.value or ""


def _line(entity: Entity, key: str) -> str:
    """The key as a field of one line can hold it: as JSON where it has line breaks, which a browser would leave out."""
    if len(entity.key) == 1 and not {"\n", "\r"}.isdisjoint(key) and not key.lstrip().startswith("{"):
        return canonical_json.dumps({entity.key[0]: key})
    return key


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its values as lines, cut where they are long."""
    return row | {name: value_lines(row[name]) for name in ("columns", "undeclared")}


MOST_MESSAGES: Final = 2_000


class PublishedMessage(NamedTuple):
    """The last message of a key. `found`: whether it is among those that were read; `value`: its document, None for a tombstone;
    `why`: the reason where it was not found."""

    found: bool
    value: Any = None
    why: str = ""


def published_message(
    settings: Settings, product: Product, entities: Mapping[str, Entity], key: bytes
) -> PublishedMessage:
    """The last message of a key, among the last MOST_MESSAGES of the product's topic. A message in Avro needs the registry of its
    schema."""
    if not settings.bootstrap_servers:
        return PublishedMessage(False, why="give --bootstrap-servers, and the console looks for it in the topic")
    try:
        records = read_sample(
            settings.bootstrap_servers, dict(settings.kafka), product.topic, MOST_MESSAGES, ANSWER_SECONDS
        )
        mine = [record for record in records if record.key == key]
        if not mine:
            why = f"it is not among the last {MOST_MESSAGES:,} messages of topic {product.topic}"
            return PublishedMessage(False, why=why)
        return PublishedMessage(True, _document(settings, product, entities, mine[-1]))
    except (KafkaError, SchemaRegistryAway, SettingError) as error:
        return PublishedMessage(False, why=str(error))
    except ValueError:
        why = f"topic {product.topic} has a message that is no document of this version, or of another program"
        return PublishedMessage(False, why=why)


def _message(parts: ConsoleParts, product: Product, entities: Mapping[str, Entity], key: bytes) -> PublishedMessage:
    """The last message of a key; where the broker is silent, the one that it showed last, which counts as not found."""
    known = parts.broker.ask(
        ("message", product.topic, key),
        lambda: published_message(parts.settings, product, entities, key),
        FRESH_SECONDS,
    )
    found = known.value or PublishedMessage(False)
    return PublishedMessage(False, why=known.why) if known.why else found


def _document(settings: Settings, product: Product, entities: Mapping[str, Entity], message: Record) -> Any:
    """The document of a message; None of a tombstone. Raises ValueError for bytes that are none."""
    if product.format == "avro":
        if not settings.schema_registry:
            raise SettingError(NO_REGISTRY)
        (message,) = as_json([message], product, entities, resolve_schema_registry(settings.schema_registry))
    return None if message.value is None else canonical_json.loads(message.value)


def record_age(settings: Settings, origin: Mapping[str, Any]) -> str:
    """The age of the record at this position, as its topic dates it; else why it is unknown."""
    if not settings.bootstrap_servers:
        return "unknown: give --bootstrap-servers"
    try:
        found = read_record(
            settings.bootstrap_servers,
            dict(settings.kafka),
            origin["topic"],
            origin["partition"],
            origin["offset"],
            ANSWER_SECONDS,
        )
    except KafkaError as error:
        return f"unknown: {error}"
    if found is None:
        return "unknown: the topic has no such record any more"
    return duration_text(time() - found.timestamp / 1000)


DOCUMENTS = (
    Screen(path="/documents", menu="Documents", template="documents.html", show=show_document),
    Screen(path="/rows", menu="Documents", template="rows.html", show=show_row),
)
