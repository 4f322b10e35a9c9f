"""Which dead letters are those of a row: by the keys that they show, never by text within other text.

A dead letter names the entity of its record. The letter in place of a document names the entity of the root, and has the key of
the document. So the letters of former topics count too. A letter without such a name, or with that of an entity that is no more,
belongs to the entity that reads its topic.

A letter whose key nobody can read may be one of any row. It stays, unless a person looked at it and chose it.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from processor.engine.plan.plan import root_of
from processor.engine.rounds.decoding import shown_keys
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.framing import FramedReader, is_framed, schema_ids
from processor.values.record import Record, Rejected, Value
from processor.values.reject_reasons import OF_DOCUMENTS
from processor.values.settled_form import ColumnForms
from statestore import keys

SHORTEST_TEXT = 6
"""Fewer characters of a key are in the bytes of too many other records by chance."""
LetterPlace = tuple[str, int, int]
"""Topic, partition and offset of a record."""
Belonging = Literal["row", "other", "unread", "mention"]
"""`unread`: nobody can read its key; `mention`: nor that, and its bytes have the text of the row's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterChoice:
    """What a person decided about dead letters whose key nobody can read. `own`: those of the row; `others`: those of other
    rows."""

    own: frozenset[LetterPlace] = field(default_factory=frozenset)
    others: frozenset[LetterPlace] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLetters:
    """Tells the dead letters of the row with this key. `entities`: the names of all entities. `documents`: the topics of the
    products whose root is the entity. `schemas`: reads framed records. `forms`: of the entity's decimals, as they are settled."""

    entity: Entity
    key: tuple[Value, ...]
    entities: Collection[str]
    documents: Collection[str]
    schemas: FramedReader
    choice: LetterChoice
    forms: ColumnForms = field(default_factory=dict)

    def belongs(self, letter: Rejected) -> Belonging:
        """Whose a dead letter is. Asks the schema registry for the schemas of a framed record."""
        record = letter.record
        if letter.code in OF_DOCUMENTS:
            return "row" if self._is_entitys(letter, self.documents) and self._is_document(record) else "other"
        if not self._is_entitys(letter, (self.entity.topic,)):
            return "other"
        self.schemas.fetch(schema_ids(record))
        if shown := shown_keys(record, self.entity, self.schemas, self.forms):
            return "row" if self.key in shown else "other"
        place = record.topic, record.partition, record.offset
        if place in self.choice.own:
            return "row"
        if place in self.choice.others:
            return "other"
        return "mention" if mentions(record, self.key) else "unread"

    def _is_entitys(self, letter: Rejected, topics: Collection[str]) -> bool:
        if letter.entity in self.entities:
            return letter.entity == self.entity.name
        return letter.record.topic in topics

    def _is_document(self, record: Record) -> bool:
        return root_of(self.entity, (record.key or b"").decode(errors="replace")) == keys.encode(self.key)


def mentions(record: Record, key: tuple[Value, ...]) -> bool:
    """Whether the bytes of a record have the text of each part of the key: in text as whole words."""
    if sum(len(str(part)) for part in key) < SHORTEST_TEXT:
        return False
    parts = [part for part in (record.key, record.value) if part]
    return all(any(_holds(data, part) for data in parts) for part in key)


def mentions_text(text: str, key: tuple[Value, ...]) -> bool:
    """Whether a text has each part of the key as whole words."""
    return sum(len(str(part)) for part in key) >= SHORTEST_TEXT and all(_has_word(text, part) for part in key)


def _holds(data: bytes, part: Value) -> bool:
    if is_framed(data):
        return isinstance(part, str) and part.encode(errors="replace") in data
    return _has_word(data.decode(errors="replace"), part)


def _has_word(text: str, part: Value) -> bool:
    forms = {str(part), canonical_json.dumps(part).strip('"')}
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) for form in forms)
