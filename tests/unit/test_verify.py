"""Published documents against the state: what differs is told, what a running job is between is not."""

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from processor.definitions.load import load, read_directory
from processor.lockstep import Lockstep
from processor.model import canonical_json
from processor.model.change import Record
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import MemoryOutbox, Trial
from processor.verify import Verified, Verifier, overlaid

PLAN = plan_alone(load(read_directory(Path(__file__).parents[2] / "examples" / "github")), slots=20)
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


def verified(trial: Trial, *topics: Iterable[Record], sample: int | None = None, wait: Any = lambda: None) -> Verified:
    """What verify tells of a topic that is read once, or twice with another content."""
    reads = iter(topics)
    first = list(next(reads))
    lockstep = overlaid(Lockstep(store=trial.store, outbox=MemoryOutbox()))
    told: list[list[Record]] = [first]

    def topic() -> list[Record]:
        return told.pop() if told else list(next(reads, first))

    return Verifier(plan=PLAN, lockstep=lockstep, wait=wait).verify(PROFILE, topic, sample, Random(1))


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
