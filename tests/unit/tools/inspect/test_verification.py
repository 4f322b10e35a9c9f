"""Verify reports documents that differ from the state or from SQL, but not those that a running job is about to publish, nor
those that wait at the gate of their product. Then the part of a document that compares with the answer of its product's SQL.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.follow_up_stages import RootToRepair
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.language.product.document_type import document_schema
from processor.language.product.product import Product
from processor.tools.inspect.verification import Mirror, VerificationResult, Verifier, comparable, with_open_changes
from processor.values import canonical_json
from processor.values.record import Record
from tests.simulator.oracle import documents
from tests.unit.engine.rounds.test_gates import Shop

DEFINITIONS = load(read_directory(Path(__file__).parents[4] / "examples" / "github"))
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


class LoopTables:
    """Tables over which nested loops give the answer of Postgres."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Any, Any]] = {}
        self.filled: list[str] = []

    def fill(self, name: str, rows: Iterable[Mapping[str, Any]], indexes: Any) -> None:
        self.filled.append(name)
        self.tables[name] = dict(enumerate(rows))

    def answer(self, product: Product, clock: int) -> Iterator[tuple[str, str]]:
        for key, document in documents(product, DEFINITIONS, self.tables, clock).items():
            yield key, canonical_json.dumps(document)


def mirror(trial: Trial, tables: LoopTables | None = None) -> Mirror:
    return Mirror(plan=PLAN, store=trial.store, tables=tables or LoopTables(), report=lambda _: None)


def verified(
    trial: Trial, *topics: Iterable[Record], sample: int | None = None, mirror: Mirror | None = None
) -> VerificationResult:
    """The result of verify. `topics`: the content of the topic at the first look, and at the second if it differs."""
    reads = iter(topics)
    first = list(next(reads))
    runner = with_open_changes(StepRunner(store=trial.store))
    unread: list[list[Record]] = [first]

    def topic() -> list[Record]:
        return unread.pop() if unread else list(next(reads, first))

    verifier = Verifier(plan=PLAN, runner=runner, wait=lambda: None, mirror=mirror)
    return verifier.verify(PROFILE, topic, sample, Random(1))


def altered(record: Record, value: bytes | None) -> Record:
    return Record(topic=record.topic, partition=0, offset=99, key=record.key, value=value)


def test_published_documents_equal_the_state(trial: Trial) -> None:
    assert verified(trial, messages(trial)) == VerificationResult(compared=10, differences=())


def test_verify_reports_a_difference_with_both_sides(trial: Trial) -> None:
    topic = messages(trial)
    state = topic[3].value
    strange = Record(topic="user_profile", partition=0, offset=100, key=b"somebody", value=b"{}")
    found = verified(trial, [*topic, altered(topic[3], b'{"email":1}'), altered(topic[4], None), strange])
    assert [(d.key, d.root, d.published, d.state) for d in found.differences] == [
        ("somebody", None, b"{}", None),
        ('{"email":"u3@x.org"}', "u3@x.org", b'{"email":1}', state),
        ('{"email":"u4@x.org"}', "u4@x.org", None, topic[4].value),
    ]


def test_verify_counts_documents_that_were_never_published(trial: Trial) -> None:
    found = verified(trial, messages(trial)[:7])
    assert (found.compared, found.unpublished, found.outdated) == (10, 3, 0)
    assert {d.published for d in found.differences} == {None}
    assert [d.root for d in found.differences] == ["u7@x.org", "u8@x.org", "u9@x.org"]
    assert verified(trial, []).unpublished == 10
    assert verified(trial, [], sample=4).unpublished == 4


def test_verify_counts_messages_of_an_older_version_of_the_product(trial: Trial) -> None:
    topic = messages(trial)
    version = ("statestore.product_version", b"0")
    old = [replace(topic[2], headers=(version,)), replace(topic[3], headers=(version,)), topic[3]]
    found = verified(trial, [*topic, *old])
    assert (found.outdated, found.differences) == (1, ())


@pytest.mark.parametrize("value", [b"0", b"", b"x", b"-1"])
def test_a_tombstone_is_of_no_version_of_the_product(trial: Trial, value: bytes) -> None:
    gone = Record(topic="user_profile", partition=0, offset=99, key=b'{"email":"gone@x.org"}', value=None)
    stamped = replace(gone, headers=(("statestore.product_version", value),))
    assert (found := verified(trial, [*messages(trial), stamped])).outdated == 0
    assert found.differences == ()


def test_verify_reports_a_document_without_a_root(trial: Trial) -> None:
    ghost = Record(topic="user_profile", partition=0, offset=100, key=b'{"email":"ghost"}', value=b"{}")
    (difference,) = verified(trial, [*messages(trial), ghost]).differences
    assert (difference.root, difference.state) == ("ghost", None)


def test_equal_values_in_another_order_do_not_differ(trial: Trial) -> None:
    topic = messages(trial)
    document = canonical_json.loads(topic[0].value or b"")
    reordered = canonical_json.encode(dict(reversed(document.items())))
    assert verified(trial, [*topic, altered(topic[0], reordered)]).differences == ()


def test_verify_reports_a_published_null_of_a_root_without_a_document(trial: Trial) -> None:
    null = Record(topic="user_profile", partition=0, offset=100, key=b'{"email":"ghost"}', value=b"null")
    (difference,) = verified(trial, [*messages(trial), null]).differences
    assert (difference.published, difference.state) == (b"null", None)


def test_a_document_that_a_job_publishes_between_the_two_looks_does_not_differ(trial: Trial) -> None:
    """The job has written a row before the first look, and publishes its document before the second."""
    before = messages(trial)
    trial.batch([user(2, offset=10, username="renamed")])
    assert verified(trial, before, messages(trial)).differences == ()
    assert len(verified(trial, before, before).differences) == 1


def test_a_sample_has_its_size_or_all_documents(trial: Trial) -> None:
    assert verified(trial, messages(trial), sample=4).compared == 4
    assert verified(trial, messages(trial), sample=40).compared == 10


def test_verify_lays_open_changes_over_a_late_index() -> None:
    late = Trial(plan=PLAN, settings=Settings(), lag=100)
    late.batch([user(1)])
    late.clock.sleep(200)
    payment = record("payment_info", {"id": 1}, {"user_id": 1, "verified": True}, 1)
    late.batch([payment])
    assert b'"payment_verified":true' in (messages(late)[-1].value or b"")
    assert verified(late, messages(late)).differences == ()


def test_sql_finds_documents_that_were_never_published_too_and_documents_without_a_root(trial: Trial) -> None:
    topic = messages(trial)
    ghost = Record(topic="user_profile", partition=0, offset=100, key=b'{"email":"ghost"}', value=b"{}")
    assert verified(trial, topic, mirror=mirror(trial)) == VerificationResult(compared=10, differences=())
    assert verified(trial, topic[1:]).unpublished == 1
    found = verified(trial, [*topic[1:], ghost], mirror=mirror(trial))
    assert found.compared == 11
    assert [(d.key, d.published, d.state, d.sql) for d in found.differences] == [
        ('{"email":"ghost"}', b"{}", None, None),
        ('{"email":"u0@x.org"}', None, topic[0].value, topic[0].value),
    ]
    assert [d.root for d in found.differences if d.stale and not d.refuted] == ["ghost", "u0@x.org"]


def test_a_document_that_differs_from_sql_only_is_refuted_and_not_stale(trial: Trial) -> None:
    class Wrong(LoopTables):
        def answer(self, product: Product, clock: int) -> Iterator[tuple[str, str]]:
            for key, document in super().answer(product, clock):
                yield key, document.replace("u3@x.org", "other") if "u3@" in key else document

    (found,) = verified(trial, messages(trial), mirror=mirror(trial, Wrong())).differences
    assert (found.key, found.stale, found.refuted) == ('{"email":"u3@x.org"}', False, True)


def test_sql_compares_only_the_documents_of_a_sample(trial: Trial) -> None:
    found = verified(trial, messages(trial)[5:], sample=4, mirror=mirror(trial))
    assert found.compared == 4
    assert 0 < len(found.differences) < 5


def test_the_mirror_reads_rows_once_until_the_second_look(trial: Trial) -> None:
    tables = LoopTables()
    reading = mirror(trial, tables)
    for _ in range(2):
        assert verified(trial, messages(trial), mirror=reading).differences == ()
    assert tables.filled == ["payment_info", "pull_request", "repo", "star", "user"]
    assert len(verified(trial, messages(trial)[1:], mirror=reading).differences) == 1
    assert tables.filled[5:] == tables.filled[:5]


def test_a_deleted_root_has_no_document(trial: Trial) -> None:
    trial.batch([Record(topic="user", partition=0, offset=50, epoch=1, key=b'{"email":"u1@x.org"}', value=None)])
    assert verified(trial, messages(trial), mirror=mirror(trial)) == VerificationResult(compared=10, differences=())


def verified_at_gate(shop: Shop) -> VerificationResult:
    runner = with_open_changes(StepRunner(store=shop.trial.store))
    sent = shop.trial.published.messages
    topic = [Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value) for n, m in enumerate(sent)]
    verifier = Verifier(plan=shop.plan, runner=runner, wait=lambda: None)
    return verifier.verify(shop.plan.products["bill"], lambda: topic, None, Random(1))


def waiting_shop() -> Shop:
    """A new order, an update and a delete that wait."""
    shop = Shop("{quiet: 1 h, at_most: 2 h}")
    shop.batch(*(shop.record("public.orders", {"id": n, "total": 1}, n) for n in (5, 6)))
    shop.trial.finish()
    shop.batch(
        shop.record("public.orders", {"id": 5, "total": 2}, 5),
        replace(shop.record("public.orders", {}, 6), value=None),
        shop.record("public.orders", {"id": 7, "total": 1}, 7),
    )
    return shop


def test_a_document_that_waits_is_no_difference() -> None:
    shop = waiting_shop()
    found = verified_at_gate(shop)
    assert (found.differences, found.unpublished, found.waiting) == ((), 0, 3)
    shop.trial.finish()
    assert (verified_at_gate(shop).differences, verified_at_gate(shop).waiting) == ((), 0)


def test_a_document_that_no_row_explains_is_a_difference_next_to_others_that_wait() -> None:
    shop = waiting_shop()
    shop.trial.published.messages.append(shop.trial.published.messages[0]._replace(key=b'{"id":8}'))
    found = verified_at_gate(shop)
    assert [one.key for one in found.differences] == ['{"id":8}']
    assert found.waiting == 3


def test_a_repair_goes_out_at_once_and_leaves_what_waits() -> None:
    shop = waiting_shop()
    shop.trial.driver.repair([RootToRepair(("bill", "5"), '{"id":5}')])
    assert shop.documents()[-1] == {"id": 5, "total": 2, "lines": []}
    assert verified_at_gate(shop).waiting == 2


ENTITIES = """
a: {key: [id], columns: {id: int, at: timestamp, text: string, doc: json}}
b: {key: [id], columns: {id: int, a: int, at: "timestamp[]"}}
"""
PRODUCT = """
product: p
root: a
embed: {all: {many: b, on: {a: id}}, some: {one: b, on: {a: id}, fields: {x: at}}}
"""
FINE, CUT = "2026-11-20T10:00:00.123456789Z", "2026-11-20T10:00:00.123457"


def comparable_document(**members: Any) -> Any:
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT})
    return comparable(members, document_schema(definitions.products["p"], definitions.entities))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"id": 1, "nickname": "n"}, {"id": 1}),
        ({"at": FINE, "text": FINE, "doc": {"at": FINE}}, {"at": CUT, "text": FINE, "doc": {"at": FINE}}),
        ({"at": "2026-11-20T11:00:00.123456789+01:00"}, {"at": CUT}),
        ({"at": "2026-11-20T10:00:00X"}, {"at": "2026-11-20T10:00:00X"}),
        ({"all": [{"id": 1, "at": [FINE, None], "y": 2}, 3]}, {"all": [{"id": 1, "at": [CUT, None]}, 3]}),
        ({"some": {"x": None, "y": 2}}, {"some": {"x": None, "y": 2}}),
        ({"some": None, "all": "text"}, {"some": None, "all": "text"}),
    ],
)
def test_comparable_leaves_out_undeclared_members_of_whole_rows_and_digits_of_times_that_postgres_drops(
    document: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert comparable_document(**document) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"id":100,"doc":{"b":1.50,"a":-0.0}}', '{"doc":{"a":0,"b":1.5},"id":1e2}'),
        ('{"id":123456789012345678901234567890123456789}', '{"id":123456789012345678901234567890123456789.0}'),
    ],
)
def test_equal_values_become_equal_texts(one: str, other: str) -> None:
    texts = [canonical_json.dumps(comparable_document(**canonical_json.loads(text))) for text in (one, other)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("values", [(True, 1), (False, 0), ("1", 1), (None, 0), ([], {}), (10**40, 10**40 + 1)])
def test_different_values_become_different_texts(values: tuple[Any, Any]) -> None:
    texts = [canonical_json.dumps(comparable_document(doc=value)) for value in values]
    assert texts[0] != texts[1]


def test_a_value_that_is_not_an_object_stays_unchanged() -> None:
    assert comparable("text", {"type": "object", "properties": {}}) == "text"
