"""A product gives its messages headers from columns of the root, next to those of every message."""

from dataclasses import replace
from random import Random
from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.verification import VerificationResult, Verifier
from processor.values import canonical_json
from processor.values.record import HEADERS, Message, Record

ENTITIES = """
user:
  key: [id]
  columns: {id: int, tenant_id: int, name: string, city: string, born: date, at: timestamp, paid: "decimal(8,2)", ok: bool}
"""
PRODUCT = """
product: users
root: user
where: name <> 'nobody'
headers:
  {tenant: tenant_id, city: city, born: born, at: at, paid: paid, ok: ok, kind: "'user'", id: id, both: "id || '/' || name"}
fields: [id, name]
"""
GROUPS = """
product: users
root: {group: user, by: [tenant_id, city]}
headers: {tenant: tenant_id}
fields: {n: count(*)}
"""


class Job:
    """A trial with rows of users."""

    def __init__(self, product: str = PRODUCT) -> None:
        self.plan = plan_alone(load({"entities.yaml": ENTITIES, "users.yaml": product}), slots=20)
        self.trial = Trial(plan=self.plan, settings=Settings())
        self.offset = 0

    def send(self, id_: int, **columns: Any) -> list[tuple[dict[str, str], bytes | None]]:
        """The own headers and the value of each message that a batch with this row sends. Without columns: its delete."""
        before, key = len(self.trial.published.messages), canonical_json.encode({"id": id_})
        value = canonical_json.encode({"id": id_, **columns}) if columns else None
        record = Record(topic="user", partition=0, offset=self.offset, epoch=1, key=key, value=value)
        self.offset += 1
        self.trial.batch([record])
        return [(own(one), one.value) for one in self.trial.published.messages[before:]]


def own(message: Message) -> dict[str, str]:
    return {name: (text or b"").decode() for name, text in message.headers if name not in HEADERS}


def test_the_texts_of_headers_are_those_of_the_document_and_null_is_no_header() -> None:
    row = {"tenant_id": 7, "name": "Ada", "city": "Köln", "born": "1815-12-10", "at": "2020-01-01T01:00:00+01:00"}
    ((headers, value),) = Job().send(1, **row, paid="5.50", ok=True)
    assert value == b'{"id":1,"name":"Ada"}'
    assert headers == {
        "tenant": "7",
        "city": "Köln",
        "born": "1815-12-10",
        "at": "2020-01-01T00:00:00Z",
        "paid": "5.5",
        "ok": "true",
        "kind": "user",
        "id": "1",
        "both": "1/Ada",
    }
    ((headers, _),) = Job().send(1, name="Ada")
    assert headers == {"kind": "user", "id": "1", "both": "1/Ada"}


def test_a_change_of_a_header_alone_is_a_message_and_an_equal_row_is_none() -> None:
    job = Job()
    job.send(1, tenant_id=7, name="Ada")
    assert job.send(1, tenant_id=7, name="Ada") == []
    ((headers, value),) = job.send(1, tenant_id=8, name="Ada")
    assert (headers["tenant"], value) == ("8", b'{"id":1,"name":"Ada"}')
    assert job.send(1, tenant_id=8, name="Ada") == []


def test_a_tombstone_has_the_headers_that_need_only_the_key() -> None:
    job = Job()
    for gone in ({}, {"tenant_id": 7, "name": "nobody"}):
        job.send(1, tenant_id=7, name="Ada")
        assert job.send(1, **gone) == [({"kind": "user", "id": "1"}, None)]


def test_a_group_has_headers_of_its_columns_also_in_its_tombstone() -> None:
    job = Job(GROUPS)
    assert job.send(1, tenant_id=7, city="x") == [({"tenant": "7"}, b'{"n":1}')]
    assert job.send(1, tenant_id=8, city="x") == [({"tenant": "7"}, None), ({"tenant": "8"}, b'{"n":1}')]


def test_headers_count_towards_the_size_of_a_message() -> None:
    job = Job()
    job.trial.driver.progress.setup = replace(job.trial.driver.progress.setup, message_limits={"users": 700})
    assert job.send(1, name="Ada", city="x" * 100)
    assert job.send(2, name="Ada", city="x" * 1000) == []
    (letter,) = job.trial.rejects.messages
    assert letter.key == b'{"id":2}'


def verified(job: Job, messages: list[Message]) -> VerificationResult:
    records = [
        Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value, headers=m.headers)
        for n, m in enumerate(messages)
    ]
    verifier = Verifier(plan=job.plan, runner=StepRunner(store=job.trial.store), wait=lambda: None)
    return verifier.verify(job.plan.products["users"], lambda: records, None, Random(1))


def test_verify_names_a_header_that_differs() -> None:
    job = Job()
    job.send(1, tenant_id=7, name="Ada")
    job.send(2, tenant_id=7, name="Bob")
    job.send(2)
    job.trial.finish()
    sent = job.trial.published.messages
    assert verified(job, sent).differences == ()
    headers = tuple((name, b"8" if name == "tenant" else text) for name, text in sent[0].headers)
    (found,) = verified(job, [sent[0]._replace(headers=headers), *sent[1:]]).differences
    assert (found.key, found.stale, found.published == found.state) == ('{"id":1}', True, True)
    assert (dict(found.published_headers)["tenant"], dict(found.state_headers)["tenant"]) == (b"8", b"7")
