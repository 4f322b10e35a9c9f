"""Products share a topic where a member of their keys has another constant in each: each part passes over messages of others."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import processor.job.run.topics as preparation
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import check_message_keys, plan_alone, requirements_of
from processor.engine.protocol.identity import SEQUENCES
from processor.engine.rounds.follow_up_stages import replay_document
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial, run_case
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.job.run.binding import shown_roots
from processor.job.run.topics import earlier_sequences
from processor.language.definitions.load import load
from processor.language.definitions.product_tests import read_cases
from processor.language.product.document import key_of_root, message_key
from processor.language.product.product import KeyPart, Product, WholeRow, keys_cannot_meet
from processor.tools.inspect.verification import Verifier
from processor.tools.operate.erase import LetterChoice, RowLetters
from processor.values import canonical_json
from processor.values.dead_letters import rejected_record
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Message, Record
from statestore.memory import MemoryStore

ENTITIES = """
user: {key: [id], columns: {id: int, name: string}}
visit: {key: [user, at], columns: {user: int, at: timestamp}}
"""
USERS = "{product: users, root: user, topic: all, key: {kind: \"'user'\", n: 1, id: id}}"
VISITS = "{product: visits, root: visit, topic: all, key: {kind: \"'visit'\", at: at, by: user}}"


def plan(*products: str) -> Plan:
    texts = {f"{number}.yaml": text for number, text in enumerate(products or (USERS, VISITS))}
    return plan_alone(load({"entities.yaml": ENTITIES, **texts}), slots=3)


def record(topic: str, offset: int, key: dict[str, Any], **columns: Any) -> Record:
    value = canonical_json.encode({**key, **columns}) if columns else None
    return Record(topic=topic, partition=0, offset=offset, epoch=1, key=canonical_json.encode(key), value=value)


VISIT = {"user": 1, "at": "2020-01-01T00:00:00Z"}
ADA = record("user", 0, {"id": 1}, name="Ada")


@pytest.fixture
def trial() -> Trial:
    """A job that has published a user, and a visit."""
    trial = Trial(plan=plan(), settings=Settings())
    trial.batch([ADA, record("visit", 0, VISIT, note="x")])
    return trial


def sent(trial: Trial) -> list[tuple[str, bool]]:
    return [((m.key or b"").decode(), m.value is not None) for m in trial.published.messages]


def records(trial: Trial) -> list[Record]:
    sent = trial.published.messages
    return [
        Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value, headers=m.headers)
        for n, m in enumerate(sent)
    ]


USER_KEY, VISIT_KEY = '{"kind":"user","n":1,"id":1}', '{"kind":"visit","at":"2020-01-01T00:00:00Z","by":1}'


def test_messages_have_the_keys_of_their_products(trial: Trial) -> None:
    trial.batch([record("user", 1, {"id": 1}), record("visit", 1, VISIT)])
    assert sorted(sent(trial)[:2]) == [(USER_KEY, True), (VISIT_KEY, True)]
    assert sorted(sent(trial)[2:]) == [(USER_KEY, False), (VISIT_KEY, False)]
    trial.batch([record("user", 2, {"id": 1}, name="Ada")])
    assert sent(trial)[4:] == [(USER_KEY, True)]


def test_a_key_names_a_root_of_its_own_product_alone() -> None:
    products = plan().products
    users, visits = products["users"].product, products["visits"].product
    assert key_of_root(users, USER_KEY) == '{"id":1}'
    assert message_key(users, '{"id":1}') == USER_KEY
    others = (VISIT_KEY, '{"id":1}', '{"kind":"user","n":true,"id":1}', '{"kind":"user","n":1}', "[1]", "{", "7")
    assert [key_of_root(users, key) for key in others] == [None] * len(others)
    assert key_of_root(visits, VISIT_KEY) == '{"at":"2020-01-01T00:00:00Z","user":1}'
    assert plan().root_of(products["visits"], VISIT_KEY) is not None
    assert plan().root_of(products["visits"], USER_KEY) is None


def test_keys_cannot_meet_where_one_name_has_two_constants() -> None:
    def key(**parts: Any) -> tuple[KeyPart, ...]:
        return tuple(
            KeyPart(name, "" if one != "?" else name, None if one == "?" else one) for name, one in parts.items()
        )

    assert keys_cannot_meet(key(kind="a", id="?"), key(kind="b", id="?"))
    assert keys_cannot_meet(key(kind="a", n=1), key(kind="a", n=True))
    assert not keys_cannot_meet(key(kind="a", id="?"), key(kind="a", id="?"))
    assert not keys_cannot_meet(key(kind="a", id="?"), key(other="b", id="?"))
    assert not keys_cannot_meet(key(kind="a", id="?"), key(kind="?"))
    assert not keys_cannot_meet(key(kind="a"), ())


def test_verify_passes_over_the_messages_of_the_other_product(trial: Trial) -> None:
    trial.finish()
    foreign = records(trial)[0]
    foreign = replace(foreign, key=b'{"kind":"team"}', value=b"{}", offset=9)
    verifier = Verifier(plan=plan(), runner=StepRunner(store=trial.store), wait=lambda: None)

    def verified(name: str, *more: Record) -> Any:
        return verifier.verify(plan().products[name], lambda: [*records(trial), *more], None, Random(1))

    for name, other in (("users", "visits"), ("visits", "users")):
        assert (verified(name).differences, verified(name).compared, verified(name).passed) == ((), 1, {other: 1})
        (found,) = verified(name, foreign).differences
        assert (found.key, found.root) == ('{"kind":"team"}', None)


def test_a_table_that_begins_again_takes_each_document_for_its_product(trial: Trial) -> None:
    planned = plan()
    for name, key in (("users", '{"id":1}'), ("visits", '{"at":"2020-01-01T00:00:00Z","user":1}')):
        (shown,) = shown_roots(planned, planned.products[name], records(trial))
        assert shown.key == key


def test_a_product_counts_the_sequences_of_its_own_keys(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start finds what the start before noted, and reads no topic again."""
    for name in "ab":
        trial.batch([record("user", ord(name), {"id": 1}, name=name)])
    reads: list[str] = []

    def read_topic(_servers: str, _kafka: Any, topic: str) -> list[Record]:
        reads.append(topic)
        return records(trial)

    monkeypatch.setattr(preparation, "read_topic", read_topic)
    store, settings = MemoryStore(3), Settings()
    for _ in range(3):
        assert earlier_sequences(settings, plan(), store) == {"users": 3, "visits": 1}
    assert reads == ["all", "all"]
    assert {item["SK"]: item["topic"] for item in store.partition(SEQUENCES)} == {"users": "all", "visits": "all"}


def test_the_dead_letter_of_a_document_has_the_key_of_its_message(trial: Trial) -> None:
    progress = trial.driver.progress
    progress.setup = replace(progress.setup, message_limits={"users": 400, "visits": 400})
    trial.batch([record("user", 1, {"id": 1}, name="a" * 500)])
    (message,) = trial.rejects.messages
    letter = rejected_record(message)
    assert letter.record.key == USER_KEY.encode()
    (report,) = StepRunner(store=trial.store).run([replay_document(letter, plan())])
    assert report.outcome == "refused"
    letters = RowLetters(
        entity=plan().entities["user"].entity,
        key=(1,),
        entities={"user", "visit"},
        documents={"all"},
        schemas=NO_SCHEMAS,
        choice=LetterChoice(),
        keyed=[plan().products["users"].product],
    )
    assert letters.belongs(letter) == "row"
    assert replace(letters, key=(2,)).belongs(letter) == "other"


def test_another_key_needs_another_topic() -> None:
    def snapshot(*products: str) -> Any:
        required = requirements_of(
            load({"entities.yaml": ENTITIES, **{f"{n}.yaml": p for n, p in enumerate(products)}})
        )
        return SimpleNamespace(products=required.products, waiting=())

    before = snapshot(USERS)
    check_message_keys(before, snapshot(USERS, VISITS))
    check_message_keys(before, snapshot(USERS.replace("'user'", "'person'").replace("topic: all", "topic: other")))
    for other in (USERS.replace("'user'", "'person'"), "{product: users, root: user, topic: all}"):
        with pytest.raises(PlanError, match="product users: `key` of its messages changes, and topic all would keep"):
            check_message_keys(before, snapshot(other))


def test_a_test_of_a_product_names_documents_by_their_roots() -> None:
    text = (
        '[{test: t, product: users, given: {user: [{id: 1, name: Ada}]}, expect: {"1": {id: 1, name: Ada}, "2": null}}]'
    )
    definitions = load({"entities.yaml": ENTITIES, "users.yaml": USERS, "visits.yaml": VISITS})
    (case,) = read_cases({"t.yaml": text}, definitions)
    assert case.expected[0].key == USER_KEY
    assert run_case(case, plan_alone(definitions, 3), Settings()) == ()


def test_messages_without_the_word_have_the_key_of_the_root() -> None:
    product = Product(name="p", topic="p", root="user", selection=WholeRow(), joins=())
    assert (message_key(product, '{"id":1}'), key_of_root(product, "any")) == ('{"id":1}', "any")
    assert Message("t", b"k", None) == Message("t", b"k", None, (), -1)
