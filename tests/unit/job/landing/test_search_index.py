"""The entries of an index: whole texts in, whole texts out."""

from decimal import Decimal

import orjson
import pytest
import simplejson

from processor.job.landing import search as search_index
from processor.job.landing.target import LandedMessage, fingerprint, write_latest

MESSAGE = LandedMessage(1, 3, '{"id":1}', "{}", 7, 2, 5)


@pytest.mark.parametrize(
    "document",
    [
        "{}",
        ' {\n"a":1}',
        '{"a":1.10,"b":9007199254740993,"c":[{"d":"}{"}]}',
        '{"a":"line\\nbreak \u2028"}',
        '{"a":1e400}',
    ],
)
def test_a_document_comes_back_exactly(document: str) -> None:
    entry = search_index.entry_of(MESSAGE._replace(document=document))
    assert entry is not None
    assert entry.source is not None
    assert b"\n" not in entry.source
    found = search_index.document_of(simplejson.loads(entry.source, parse_float=Decimal))
    assert (found.key, found.sequence) == ('{"id":1}', 7)
    assert fingerprint(found.document) == fingerprint(document)


@pytest.mark.parametrize("document", ["[1]", "null", "1", "", "\\xff"])
def test_a_document_that_is_no_object(document: str) -> None:
    assert search_index.entry_of(MESSAGE._replace(document=document)) is None


def test_a_tombstone_has_neither_key_nor_document() -> None:
    entry = search_index.entry_of(MESSAGE._replace(document=None))
    assert entry is not None
    assert entry.source is not None
    own = orjson.loads(entry.source)["statestore"]
    assert {name: own[name] for name in ("kind", "sequence")} == {"kind": "tombstone", "sequence": 7}
    assert own.keys() == {"kind", "sequence", "incarnation", "deleted_at"}
    assert entry.id == MESSAGE.key_hash.hex()


def test_a_refused_document_leaves_its_place_to_the_message_before_it() -> None:
    messages = [MESSAGE._replace(sequence=n, key=key) for key in "ab" for n in (1, 2, 3)]
    written: list[list[tuple[str, int]]] = []

    def write(latest: list[LandedMessage]) -> list[tuple[LandedMessage, str]]:
        written.append([(one.key, one.sequence) for one in latest])
        return [(one, "why") for one in latest if one.key == "b" and one.sequence > 1]

    refused = write_latest(messages, write)
    assert written == [[("a", 3), ("b", 3)], [("b", 2)], [("b", 1)]]
    assert [(one.sequence, reason) for one, reason in refused] == [(3, "why"), (2, "why")]
