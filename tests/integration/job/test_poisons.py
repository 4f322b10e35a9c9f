"""Every kind of poison in one batch of a real job, among good records: the partitions move on, and the account closes. The
documents of the good rows equal SQL, and a replay by wider definitions brings back what they cure."""

import json
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from processor.counts import OUTCOMES
from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.decode import decode
from processor.environment.settings.settings import statestore_version
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.job.run.run_job import run_replays
from processor.language.definitions.load import load
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.dead_letters import DeadLetter, RefusedBy, read_dead_letters
from processor.values.record import Change, Message, Record
from tests.support.poisons import POISONS, Poison, base_records, definitions, positioned

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]
RELEASE = statestore_version()
GOOD, GOOD_ROWS = 1_300, 30
"""Good records among the poisons, as many that the poisons are fewer than 5 % of the batch; and the rows that they change."""


def apply(scene: Scene, *, wider: bool) -> None:
    loaded = load(definitions(f"{scene.settings.job}.", wider=wider))
    scene.registry.apply(requirements_of(loaded), who="a test", why="the next definitions")
    scene.plan = plan_of(scene.registry.snapshot())


def produce(scene: Scene, records: Iterable[Record]) -> None:
    outbox = KafkaOutbox(scene.settings.bootstrap_servers, {})
    for r in records:
        outbox.produce(Message(topic=r.topic, key=r.key, value=r.value, headers=r.headers), r.partition, 5)
    outbox.flush()


def mixed() -> list[tuple[Poison | None, Record]]:
    """The poisons with good things between them, in the partition of the first rows; each poison next to its record."""
    good = [
        Record(topic="thing", partition=0, offset=0, key=b'{"id":%d}' % (n % GOOD_ROWS + 1_000), value=json.dumps(
            {"id": n % GOOD_ROWS + 1_000, "name": f"thing {n % 7}", "size": n, "note": f"note {n}"}).encode())
        for n in range(GOOD)
    ]  # fmt: skip
    step = GOOD // len(POISONS)
    found: list[tuple[Poison | None, Record]] = []
    for n, poison in enumerate(POISONS):
        found += [*((None, one) for one in good[n * step : (n + 1) * step]), (poison, poison.record)]
    return [*found, *((None, one) for one in good[len(POISONS) * step :])]


def sql_documents(scene: Scene, url: str, records: Iterable[Record]) -> Mapping[str, Any]:
    """The product's SQL over the tables that the good ones among these records make, each in delivery order."""
    entities = {name: scene.plan.entities[name].entity for name in ("thing", "part")}
    by_topic = {entity.topic: entity for entity in entities.values()}
    tables: dict[str, dict[Any, Any]] = {name: {} for name in entities}
    for record in records:
        change = decode(record, by_topic[record.topic])
        assert isinstance(change, Change)
        if change.row is None:
            tables[change.entity].pop(change.key, None)
        else:
            tables[change.entity][change.key] = change.row
    with oracle(url, f"{scene.settings.job}_sql", entities) as truth:
        truth.load({name: rows.values() for name, rows in tables.items()})
        return truth.documents(scene.plan.products["things"].product)


def documents(scene: Scene) -> dict[str, Any]:
    last = {r.key: r.value for r in scene.published("things")}
    return {(k or b"").decode(): canonical_json.loads(v) for k, v in last.items() if v is not None}


def position(record: Record) -> tuple[str, int, int]:
    return record.topic, record.partition, record.offset


def replay(scene: Scene, letters: Iterable[DeadLetter]) -> dict[tuple[str, int, int], str]:
    with scene.opened() as job:
        return {position(report.record): report.outcome for report in run_replays(job, list(letters))}


def test_the_good_records_of_a_poisoned_batch_have_the_documents_of_sql(
    scene: Scene, addresses: SimpleNamespace
) -> None:
    prefix = f"{scene.settings.job}."
    ends: dict[tuple[str, int], int] = {}
    for entity in ("thing", "part"):
        scene.make_topic(entity)
    apply(scene, wider=False)
    first = list(positioned(base_records(), prefix, ends))
    produce(scene, first)
    scene.run()
    pairs = mixed()
    second = list(positioned([record for _, record in pairs], prefix, ends))
    bad = {position(r): (poison, r) for (poison, _), r in zip(pairs, second, strict=True) if poison and poison.code}
    produce(scene, second)
    done = scene.run()

    assert done.tally["read"] == len(second) == sum(done.tally[outcome] for outcome in OUTCOMES)
    assert done.tally["dead letters"] == len(bad)
    topic = read_topic(scene.settings.bootstrap_servers, {}, scene.settings.dead_letter_topic)
    letters = {position(one.rejected.record): one for one in read_dead_letters(topic)}
    assert letters.keys() == bad.keys()
    for at, (poison, record) in bad.items():
        found, by = letters[at].rejected, letters[at].refused_by
        assert (found.code, found.entity, by) == (
            poison.code,
            poison.record.topic,
            RefusedBy(RELEASE, scene.plan.version),
        )
        assert poison.reason in found.reason
        assert (found.record.key, found.record.value, found.record.headers) == (
            record.key,
            record.value,
            record.headers,
        )
    taken = [r for r in (*first, *second) if position(r) not in bad]
    assert documents(scene) == sql_documents(scene, addresses.registry_url, taken)

    apply(scene, wider=True)
    scene.run()
    outcomes = replay(scene, letters.values())
    assert outcomes == {at: "applied" if poison.cured else "refused" for at, (poison, _) in bad.items()}
    cured = [record for poison, record in bad.values() if poison.cured]
    assert documents(scene) == sql_documents(scene, addresses.registry_url, [*taken, *cured])

    published = len(scene.published("things"))
    again = replay(scene, letters.values())
    assert again == {at: "superseded" if outcome == "applied" else outcome for at, outcome in outcomes.items()}
    assert len(scene.published("things")) == published
