"""What a target cannot hold is refused, counted and shown, and what no job wrote is passed over: the landing continues."""

import json
from random import Random

import pytest

from processor.values.record import HIGHEST_SEQUENCE
from tests.integration.landing.conftest import PRODUCT, LandingScene, SearchScene

LONG = "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=6_000))
"""A text that no compression makes short enough for an index."""
DEEP = b'{"n":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
REFUSED_BY_POSTGRES = {
    "a key of 6,000 characters": (LONG, {"n": 1}, None),
    "U+0000 in a key": ("nul \0", {"n": 1}, None),
    "half of a surrogate pair in a key": ("half \ud800", {"n": 1}, None),
    "U+0000 in a document": (1, {"text": "nul \0"}, None),
    "half of a surrogate pair in a document": (1, {"text": "half \ud800"}, None),
    "a document that is nested too deep": (1, {}, DEEP),
    "a number that is too large": (1, {}, b'{"n":1e200000}'),
    "a document that is no JSON": (1, {}, b"{"),
    "a document that is no text": (1, {}, b"\xff\x00\xfe"),
    "a long key and a document that is no JSON": (LONG, {}, b"\x00"),
}
FOREIGN: dict[str, dict[str, bytes | None]] = {
    "2^63 - 1": {"sequence": b"%d" % (2**63 - 1)},
    "2^63": {"sequence": b"%d" % 2**63},
    "5,000 digits": {"sequence": b"9" * 5_000},
    "one above the highest": {"sequence": b"%d" % (HIGHEST_SEQUENCE + 1)},
    "zero": {"sequence": b"0"},
    "a version of 20 digits": {"product_version": b"9" * 20},
    "a version of 5,000 digits": {"product_version": b"9" * 5_000},
    "a key that is no JSON": {"key": b"{"},
    "a key that is no text": {"key": b"\xff"},
    "a key that is no object": {"key": b"17"},
    "a key that is nested too deep": {"key": b'{"id":' + b"[" * 5_000 + b"]" * 5_000 + b"}"},
    "a key with a raw U+0000": {"key": b'{"id":"\x00"}'},
}


@pytest.mark.parametrize("case", REFUSED_BY_POSTGRES)
def test_postgres_refuses_one_document_and_takes_the_others(scene: LandingScene, case: str) -> None:
    id_, document, value = REFUSED_BY_POSTGRES[case]
    scene.publish(0, {"n": 0})
    scene.publish(id_, document, sequence=1, forged=None if value is None else {"value": value})
    scene.publish(5, {"n": 5})
    scene.last = {key: shown for key, shown in scene.last.items() if key in ('{"id":0}', '{"id":5}')}
    assert scene.land().tally["refused"] == 1
    assert scene.table() == scene.expected()
    found = scene.compare()
    assert (len(found.refused), found.missing, found.different) == (1, [], [])
    assert all(len(line) < 1_000 for line in found.lines())
    scene.publish(id_, None, sequence=2)
    scene.publish(5, {"n": 6})
    scene.land()
    assert scene.sql("select * from statestore_landing_refused") == []
    assert scene.compare().right


@pytest.mark.rest
def test_an_index_refuses_documents_and_takes_the_others(search: SearchScene) -> None:
    """Each in a batch with good ones."""
    search.publish(0, {"n": 0})
    refused: dict[str, bytes] = {
        "no number": b'{"n":"x"}',
        "nested too deep": DEEP,
        "no JSON": b"{",
        "two values": b'{"n":1}{"n":2}',
        "no text": b"\xff\x00",
        "an own member": b'{"statestore":{"kind":"offset"}}',
        "a large document that is no object": json.dumps(["x" * 3_000_000]).encode(),
        "an empty name": b'{"":1}',
        f"a long key {LONG} {LONG}": b'{"n":"x"}',
    }
    for id_, value in refused.items():
        search.publish(id_, {}, sequence=1, forged={"value": value})
    search.publish(5, {"n": 5})
    tally = search.land().tally
    found = search.compare()
    names = {one.key[:20] for one in found.refused}
    assert tally["refused"] == len(found.refused) >= 8, names
    assert (found.missing, found.different, found.extra) == ([], [], [])
    assert {key: shown for key, shown in search.table().items() if key in ('{"id":0}', '{"id":5}')} == search.expected()
    for id_ in refused:
        search.publish(id_, None, sequence=2)
    search.land()
    assert search.compare().right


def test_a_message_that_no_job_wrote_is_passed_over_and_named(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.publish(1, {"n": 1})
    for forged in FOREIGN.values():
        scene.publish(1, {"n": 666}, forged=forged)
    scene.publish(1, {"n": 2})
    landing = scene.land()
    assert landing.tally["foreign"] == len(FOREIGN)
    assert scene.table() == {'{"id":1}': {"n": 2}}
    landing.say_foreign()
    (event,) = (one for one in scene.events if one.what == "foreign")
    assert f"{scene.topic.name}/" in event.text
    assert "its statestore.sequence is no whole number from 1 to 9007199254740991" in event.text
    assert scene.compare().right


def test_two_texts_of_one_key_in_a_batch(scene: LandingScene) -> None:
    """Postgres holds one document for both."""
    scene.publish(1, {"n": 1})
    scene.publish(1, {"n": 2}, sequence=7, forged={"key": b'{"id": 1}'})
    scene.publish(1, {"n": 3}, sequence=6, forged={"key": b'{"id":1.0}'})
    assert scene.land().tally["refused"] == 0
    assert scene.table() == {'{"id":1}': {"n": 2}}


@pytest.mark.rest
def test_refusals_that_an_earlier_release_noted(scene: LandingScene) -> None:
    scene.publish(1, {"text": "nul \0"})
    scene.land()
    for statement in (
        "alter table statestore_landing_refused drop column key_hash",
        "alter table statestore_landing_refused add primary key (table_name, key)",
        *(f"alter table statestore_landing drop column {one}" for one in ("id", "origin", "cluster", "earlier")),
        f"alter table {PRODUCT} drop column incarnation",
    ):
        scene.sql(statement)
    scene.publish(LONG, {"n": 1})
    scene.land()
    assert len(scene.compare().refused) == 2
