"""Published documents against the state and against SQL: what differs is told, what a running job is between is not."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from processor.definitions.load import load, read_directory
from processor.lockstep import Lockstep
from processor.mirror import Mirror
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.product import Product
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import MemoryOutbox, Trial
from processor.verify import Verified, Verifier, overlaid
from tests.simulator.oracle import documents

DEFINITIONS = load(read_directory(Path(__file__).parents[2] / "examples" / "github"))
PLAN = plan_alone(DEFINITIONS, slots=20)
PROFILE = PLAN.products["user_profile"]


def user(n: int, offset: int | None = None, **columns: Any) -> Record:
    return record("user", {"email": f"u{n}@x.org"}, {"id": n, "username": f"u{n}", **columns}, offset or n)


def record(topic: str, key: dict[str, Any], row: dict[str, Any], offset: int) -> Record:
    value = canonical_json.encode(key | row)
    return Record(topic=topic, partition=0, offset=offset, epoch=1, key=canonical_json.encode(key), value=value)


@pytest.fixture
def trial() -> Trial:
    """A job that has published ten users' documents, its open changes settled."""
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch(user(n) for n in range(10))
    trial.finish()
    return trial


def messages(trial: Trial) -> list[Record]:
    sent = trial.published.messages
    return [Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value) for n, m in enumerate(sent)]


class Loops:
    """Tables over which nested loops answer what Postgres would."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Any, Any]] = {}
        self.filled: list[str] = []

    def fill(self, name: str, rows: Iterable[Mapping[str, Any]], indexes: Any) -> None:
        self.filled.append(name)
        self.tables[name] = dict(enumerate(rows))

    def answer(self, product: Product) -> Iterator[tuple[str, str]]:
        for key, document in documents(product, DEFINITIONS, self.tables).items():
            yield key, canonical_json.dumps(document)


def mirror(trial: Trial, tables: Loops | None = None) -> Mirror:
    return Mirror(plan=PLAN, store=trial.store, tables=tables or Loops(), report=lambda _: None)


def verified(
    trial: Trial, *topics: Iterable[Record], sample: int | None = None, mirror: Mirror | None = None
) -> Verified:
    """What verify tells of a topic that is read once, or twice with another content."""
    reads = iter(topics)
    first = list(next(reads))
    lockstep = overlaid(Lockstep(store=trial.store, outbox=MemoryOutbox()))
    told: list[list[Record]] = [first]

    def topic() -> list[Record]:
        return told.pop() if told else list(next(reads, first))

    verifier = Verifier(plan=PLAN, lockstep=lockstep, wait=lambda: None, mirror=mirror)
    return verifier.verify(PROFILE, topic, sample, Random(1))


def altered(record: Record, value: bytes | None) -> Record:
    return Record(topic=record.topic, partition=0, offset=99, key=record.key, value=value)


def test_what_was_published_equals_the_state(trial: Trial) -> None:
    assert verified(trial, messages(trial)) == Verified(compared=10, differences=())


def test_what_differs_is_told_with_both_sides(trial: Trial) -> None:
    topic = messages(trial)
    state = topic[3].value
    strange = Record(topic="user_profile", partition=0, offset=100, key=b"somebody", value=b"{}")
    found = verified(trial, [*topic, altered(topic[3], b'{"email":1}'), altered(topic[4], None), strange])
    assert [(d.key, d.root, d.published, d.state) for d in found.differences] == [
        ("somebody", None, b"{}", None),
        ('{"email":"u3@x.org"}', "u3@x.org", b'{"email":1}', state),
        ('{"email":"u4@x.org"}', "u4@x.org", None, topic[4].value),
    ]


def test_a_document_without_a_root_is_told(trial: Trial) -> None:
    ghost = Record(topic="user_profile", partition=0, offset=100, key=b'{"email":"ghost"}', value=b"{}")
    (difference,) = verified(trial, [*messages(trial), ghost]).differences
    assert (difference.root, difference.state) == ("ghost", None)


def test_equal_values_in_another_spelling_do_not_differ(trial: Trial) -> None:
    topic = messages(trial)
    spelt = canonical_json.loads(topic[0].value or b"")
    reordered = canonical_json.encode(dict(reversed(spelt.items())))
    assert verified(trial, [*topic, altered(topic[0], reordered)]).differences == ()


def test_a_document_that_is_null_is_told_where_there_is_none(trial: Trial) -> None:
    null = Record(topic="user_profile", partition=0, offset=100, key=b'{"email":"ghost"}', value=b"null")
    (difference,) = verified(trial, [*messages(trial), null]).differences
    assert (difference.published, difference.state) == (b"null", None)


def test_what_a_job_published_meanwhile_does_not_differ(trial: Trial) -> None:
    """Between the two looks the job publishes what it had written before the first."""
    before = messages(trial)
    trial.batch([user(2, offset=10, username="renamed")])
    assert verified(trial, before, messages(trial)).differences == ()
    assert len(verified(trial, before, before).differences) == 1


def test_a_sample_takes_so_many(trial: Trial) -> None:
    assert verified(trial, messages(trial), sample=4).compared == 4
    assert verified(trial, messages(trial), sample=40).compared == 10


def test_open_changes_are_laid_over_a_late_index() -> None:
    late = Trial(plan=PLAN, settings=Settings(), lag=100)
    late.batch([user(1)])
    late.now += 200
    payment = record("payment_info", {"id": 1}, {"user_id": 1, "verified": True}, 1)
    late.batch([payment])
    assert b'"payment_verified":true' in (messages(late)[-1].value or b"")
    assert verified(late, messages(late)).differences == ()


def test_sql_finds_what_was_never_published_and_what_has_no_root(trial: Trial) -> None:
    topic = messages(trial)
    ghost = Record(topic="user_profile", partition=0, offset=100, key=b'{"email":"ghost"}', value=b"{}")
    assert verified(trial, topic, mirror=mirror(trial)) == Verified(compared=10, differences=())
    assert verified(trial, topic[1:]) == Verified(compared=9, differences=())
    found = verified(trial, [*topic[1:], ghost], mirror=mirror(trial))
    assert found.compared == 11
    assert [(d.key, d.published, d.state, d.sql) for d in found.differences] == [
        ('{"email":"ghost"}', b"{}", None, None),
        ('{"email":"u0@x.org"}', None, topic[0].value, topic[0].value),
    ]
    assert [d.root for d in found.differences if d.stale and not d.refuted] == ["ghost", "u0@x.org"]


def test_a_document_that_only_sql_answers_otherwise_is_told_and_not_to_be_published_anew(trial: Trial) -> None:
    class Wrong(Loops):
        def answer(self, product: Product) -> Iterator[tuple[str, str]]:
            for key, document in super().answer(product):
                yield key, document.replace("u3@x.org", "other") if "u3@" in key else document

    (found,) = verified(trial, messages(trial), mirror=mirror(trial, Wrong())).differences
    assert (found.key, found.stale, found.refuted) == ('{"email":"u3@x.org"}', False, True)


def test_of_a_sample_sql_compares_no_more(trial: Trial) -> None:
    found = verified(trial, messages(trial)[5:], sample=4, mirror=mirror(trial))
    assert found.compared == 4
    assert 0 < len(found.differences) < 5


def test_rows_are_read_once_for_all_products_until_the_second_look(trial: Trial) -> None:
    tables = Loops()
    reading = mirror(trial, tables)
    for _ in range(2):
        assert verified(trial, messages(trial), mirror=reading).differences == ()
    assert tables.filled == ["payment_info", "pull_request", "repo", "star", "user"]
    assert len(verified(trial, messages(trial)[1:], mirror=reading).differences) == 1
    assert tables.filled[5:] == tables.filled[:5]


def test_a_deleted_row_is_none(trial: Trial) -> None:
    trial.batch([Record(topic="user", partition=0, offset=50, epoch=1, key=b'{"email":"u1@x.org"}', value=None)])
    assert verified(trial, messages(trial), mirror=mirror(trial)) == Verified(compared=10, differences=())
