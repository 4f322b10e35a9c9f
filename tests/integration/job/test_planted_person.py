"""A person in every path that a record can take: after the erasure, only places that the certificate names hold a mark of hers.

Her key has a mark, and her other values have another one. Her records become a row with slots and edges, documents of her own and
of another root, dead letters of all kinds, a dead letter in place of a document, notes of replays, statistics, and documents in
topics that no product has any more. The test searches every item, table, topic and file as bytes.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from registry.edits import operations
from registry.edits.edit import Signature
from tests.support.required import require_schema_packages

require_schema_packages()

from processor.cli.main import main  # noqa: E402
from processor.engine.plan.planning import plan_of, requirements_of  # noqa: E402
from processor.engine.protocol.replays import drop, note_keys, replay_key  # noqa: E402
from processor.engine.protocol.segments import OpenChange, unpack  # noqa: E402
from processor.environment.settings.settings import Settings, setting_flags  # noqa: E402
from processor.environment.stores.kinds import open_store  # noqa: E402
from processor.job.kafka.reader import read_topic  # noqa: E402
from processor.language.definitions.load import load  # noqa: E402
from processor.tools.operate.registry import copy_state  # noqa: E402
from processor.values.record import Record  # noqa: E402
from statestore import keys  # noqa: E402
from statestore.store import Item  # noqa: E402
from tests.integration.job.running_job import configure  # noqa: E402
from tests.support.registry_stub import registry_stub  # noqa: E402
from tests.unit.job.kafka.framed import avro, head  # noqa: E402

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.rest,  # seven starts of a job
    pytest.mark.filterwarnings(
        "ignore:unclosed:ResourceWarning"
    ),  # PySpark's own, and of the verbs, which end with their process
]
KEY, VALUE = "keycanary77af@example.org", "valuecanary5b2e"
OTHER = "other@example.org"
MARKS = {"key": b"keycanary77af", "value": b"valuecanary5b2e"}
FIELDS = [{"name": name, "type": "string"} for name in ("email", "name", "age")]
AVRO = {"type": "record", "name": "Person", "fields": FIELDS}
JSON_SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ("email", "name", "age")}}
LONG = " and so on" * 400


def definitions(job: str, *products: dict[str, Any]) -> dict[str, str]:
    entities = {
        "person": {
            "topic": f"{job}.person",
            "key": ["email"],
            "columns": {"email": "string", "name": "string", "age": "int", "about": "string"},
        },
        "visit": {
            "topic": f"{job}.visit",
            "key": ["n"],
            "columns": {"n": "int", "who": "string", "note": "string"},
        },
    }
    texts = {f"products/{one['product']}.yaml": json.dumps(one) for one in products}
    return {"entities.yaml": json.dumps(entities), **texts}


def product(job: str, name: str, topic: str = "", **more: Any) -> dict[str, Any]:
    return {"product": name, "topic": f"{job}.{topic or name}", "root": "person", **more}


def people(job: str, topic: str) -> dict[str, Any]:
    visits = {"many": "visit", "on": {"who": "email"}, "fields": ["n", "note"], "strong": True}
    return product(job, "people", topic, fields=["email", "name"], embed={"visits": visits})


def log(job: str) -> dict[str, Any]:
    by = {"one": "person", "on": {"email": "who"}, "fields": ["email", "name"]}
    return {"product": "log", "topic": f"{job}.log", "root": "visit", "fields": ["n"], "embed": {"by": by}}


def apply(scene: Scene, *products: dict[str, Any]) -> None:
    required = requirements_of(load(definitions(scene.settings.job, *products)))
    scene.registry.apply(required, who="a test", why="the next definitions")
    scene.plan = plan_of(scene.registry.snapshot())


def planted(email: str, **more: Any) -> tuple[str, Any, Any]:
    return (
        "person",
        {"email": email},
        {"email": email, "name": VALUE, "age": 30, "extra": f"{VALUE} undeclared", **more},
    )


def broken(email: str, key: Any = None) -> tuple[str, Any, Any]:
    return "person", key, {"email": email, "name": VALUE if email == KEY else "", "age": f"{VALUE} is no number"}


def letters_of_hers(numbers: SimpleNamespace) -> list[tuple[str, Any, Any]]:
    row = {"email": KEY, "name": VALUE, "age": "old"}
    return [
        broken(KEY, {"email": KEY}),
        broken(KEY),
        ("person", None, avro(numbers.avro, AVRO, row)),
        ("person", None, head(numbers.json) + json.dumps(row).encode()),
        ("person", None, f'{{"email":"{KEY}","name":"{VALUE}'.encode()),
        ("person", {"email": KEY}, f"{VALUE} is no JSON".encode()),
        ("person", {"email": OTHER}, {"email": KEY, "name": VALUE, "age": 1}),
    ]


def search(scene: Scene, settings: Settings, printed: str) -> dict[str, set[str]]:
    """The marks of each place, by its name in the certificate."""
    found: dict[str, set[str]] = defaultdict(set)

    def look(place: str, data: bytes) -> None:
        if marks := {name for name, mark in MARKS.items() if mark in data or mark.hex().encode() in data}:
            found[place] |= marks

    for place, data in _items(settings):
        look(place, data)
    with psycopg.connect(settings.registry.replace("+psycopg", "")) as connection:
        for schema, table in connection.execute("select schemaname, tablename from pg_tables").fetchall():
            if schema == settings.registry_schema:
                rows = connection.execute(f'select one::text from "{schema}"."{table}" one'.encode()).fetchall()
                look("registry", str(rows).encode())
    for topic in _topics(scene):
        for record in read_topic(settings.bootstrap_servers, {}, topic):
            look(f"topic {topic}", repr((record.key, record.value, record.headers)).encode())
    for path in Path(settings.checkpoint).rglob("*"):
        look("checkpoint", path.name.encode() + (path.read_bytes() if path.is_file() else b""))
    look("output", printed.encode())
    return found


def _items(settings: Settings) -> Iterator[tuple[str, bytes]]:
    """Each item of the table as bytes, packed texts unpacked, with the place that it belongs to."""
    table = f"table {settings.table}"
    with closing(open_store(settings)) as store:
        page = store.scan(None, 1000)
        assert page.after is None
        for item in page.items:
            of_visit = item["PK"].startswith(("TABLE#visit", "EDGE#visit"))
            yield f"{table}, visit" if of_visit else table, _bytes(item)


def _bytes(item: Item) -> bytes:
    packed = item.get("rows")  # of open changes
    unpacked = [unpack(bytes(packed))] if isinstance(packed, bytes | bytearray) else []
    return b"\n".join([repr(item).encode(), *unpacked])


def _topics(scene: Scene) -> list[str]:
    job = scene.settings.job
    names = ("person", "visit", "people", "people2", "log", "small", "gone", "picky", "rejects")
    return sorted(scene.admin().topics([f"{job}.{name}" for name in names]))


@pytest.mark.parametrize("store", ["dynamodb", "postgres"])
def test_only_places_that_the_certificate_names_hold_a_person_after_her_erasure(
    store: str,
    new_scene: Callable[..., Scene],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    scene = new_scene(store=store)
    job = scene.settings.job
    for name, _ in setting_flags():
        value = getattr(scene.settings, name)
        monkeypatch.setenv(f"STATESTORE_{name.upper()}", str.__str__(value) if isinstance(value, str) else str(value))
    with registry_stub() as stub:
        numbers = SimpleNamespace(avro=stub.add(AVRO), json=stub.add(JSON_SCHEMA, "JSON"))
        file = tmp_path / "settings.toml"
        file.write_text(f'[schema_registry]\nurl = "{stub.url}"\n')
        scene.settings = replace(scene.settings, schema_registry=(("url", stub.url),))

        def verb(*words: str) -> int:
            return main([*words, "--settings", str(file)])

        _live_with_her(scene, numbers)
        assert verb("statistics") == 0
        capfd.readouterr()
        _note_replays(scene)
        assert {"key", "value"} <= search(scene, scene.settings, "")[f"table {job}"]

        place = f"{job}.person/0/{_offset_of(scene, b'nobody reads')}"
        refused = verb("erase", "person", json.dumps({"email": KEY}), "--json")
        printed = capfd.readouterr()
        assert refused == 1
        removed = json.loads(printed.out)["removed"]
        assert any(one["where"] == "registry" and "most frequent value" in one["what"] for one in removed)
        assert f"nobody can read the key of 1 dead letters that have the text of this key ({place})" in printed.err
        done = verb("erase", "person", json.dumps({"email": KEY}), "--json", "--letter", place)
        printed = capfd.readouterr()
        assert done == 0, printed.err
        certificate = json.loads(printed.out)
        assert certificate["complete"]
        left = [(letter[3], letter[4]) for letter in scene.rejected()]
        assert left == [(None, json.dumps(broken(OTHER)[2]).encode().replace(VALUE.encode(), b"some"))]

        scene_found = search(scene, scene.settings, printed.err)
        named = {one["where"] for one in certificate["remains"]}
        _check(scene, scene_found, named)

        scene.lose_checkpoint()
        counted = scene.run().tally
        assert counted["ignored: erased"] > len(letters_of_hers(numbers))
        assert scene.last_values(f"{job}.people2")[json.dumps({"email": KEY}, separators=(",", ":"))] is None
        again = {
            place: marks
            for place, marks in search(scene, scene.settings, "").items()
            if place != f"topic {job}.rejects"
        }
        _check(scene, again, named)

        target = replace(scene.settings, store="postgres", table=f"{job}_copy")
        copy_state(scene.settings, target, scene.registry, owner="a test", report=lambda _: None)
        copied = {place for place, marks in search(scene, target, "").items() if place.startswith("table ")}
        assert copied == {f"table {job}_copy", f"table {job}_copy, visit"}


def _live_with_her(scene: Scene, numbers: SimpleNamespace) -> None:
    """All that happens before the erasure. `gone` goes without tombstones, and `people` gets another topic."""
    job = scene.settings.job
    for name in ("person", "visit"):
        scene.admin().ensure([f"{job}.{name}"], partitions=2, compacted=False)
    scene.admin().ensure([f"{job}.small"], partitions=2, compacted=True)
    configure(scene, f"{job}.small", max_message_bytes="1500")
    small = product(job, "small", fields=["email", "about"])
    picky = product(job, "picky", fields=["email"], where=f"email <> '{KEY}'")
    gone = product(job, "gone", fields=["email", "name"])
    apply(scene, people(job, "people"), log(job), small, picky, gone)
    visits: list[Any] = [("visit", {"n": n}, {"n": n, "who": KEY if n < 5 else OTHER, "note": ""}) for n in range(6)]
    scene.produce(planted(KEY), planted(KEY, about=LONG), planted(OTHER, name="", extra=""), partition=0)
    scene.produce(*visits, ("visit", {"n": 2}, {"n": 2, "who": OTHER, "note": "hers before"}), partition=0)
    others = json.loads(json.dumps(broken(OTHER)[2]).replace(VALUE, "some"))
    scene.produce(*letters_of_hers(numbers), ("person", None, others), partition=0)
    scene.produce(("person", None, f"nobody reads {KEY} {VALUE}".encode()), partition=0)
    scene.run()
    scene.registry.operate(Signature("a test", "not needed"), operations.remove, "gone", tombstones=False)
    apply(scene, people(job, "people2"), log(job), small, picky)
    scene.produce(planted(KEY, about="short"), planted(KEY, about=LONG, age=31), partition=0)
    scene.run()
    scene.produce(planted(KEY, age=32), partition=0)  # the job has not read it yet


def _note_replays(scene: Scene) -> None:
    """Leaves what a replay that broke off leaves, and what a person left who dropped a letter."""
    plan, sk = scene.plan.entities["person"], keys.encode((KEY,))
    assert sk is not None
    record = Record(topic=scene.topic("person"), partition=0, offset=10_000, epoch=1, key=None, value=None)
    change = OpenChange("person", plan.key(sk), "1", ((1, KEY),), frozenset({(1, f"{VALUE} before")}))
    dropped = replace(record, offset=_offset_of(scene, b"is no JSON"))
    with closing(open_store(scene.settings)) as store:
        store.write(note_keys(replay_key(record), change, 1 << 40))
        store.write(drop(dropped, who="me", why=f"{KEY} asked", at=datetime(2026, 11, 24, tzinfo=UTC)))


def _offset_of(scene: Scene, text: bytes) -> int:
    """The offset of her first record that has this text."""
    topic = f"{scene.settings.job}.person"
    return int(next(r.offset for r in scene.lines if r.topic == topic and text in (r.value or b"")))


def _check(scene: Scene, found: dict[str, set[str]], named: set[str]) -> None:
    """Every place with a mark is named, and her values are nowhere but in topics of others, and in older documents."""
    job = scene.settings.job
    assert found.keys() <= named, found.keys() - named
    assert {place for place, marks in found.items() if "value" in marks} <= {
        f"topic {job}.{name}" for name in ("person", "people", "people2", "log", "small", "gone")
    }
    assert found[f"table {job}"] == found[f"table {job}, visit"] == found["registry"] == {"key"}
