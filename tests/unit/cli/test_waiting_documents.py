"""`explain PRODUCT KEY` and `get` of a document that waits at its gate."""

import json
from contextlib import nullcontext

import pytest

from processor.cli import choices, look
from processor.cli.choices import RequestedDocument
from processor.cli.main import main
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.settings.settings import Settings
from processor.job.run import feed
from processor.values.record import TransactionEnd
from tests.unit.engine.rounds.test_gates import Shop, whole

Printed = pytest.CaptureFixture[str]
GATE = "{transactions: whole, quiet: 3 s, every: 10 s}"


class KnownEnds:
    """The transaction topic, in place of Kafka."""

    def __init__(self) -> None:
        self.known: list[TransactionEnd] = []

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        found, self.known = self.known, []
        return found

    def close(self) -> None:
        return None


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> KnownEnds:
    found = KnownEnds()
    monkeypatch.setattr(feed, "transaction_feed", lambda *_: found)
    return found


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch, ends: KnownEnds) -> Shop:
    """A published order, a second later changed by a transaction of which a record is missing, half a second ago."""
    shop = Shop(GATE)
    shop.batch(shop.record("public.orders", {"id": 5, "total": 1}, 5))
    shop.trial.finish()
    _, _, order, line = whole(shop)
    shop.batch(order, line)
    shop.trial.clock.seconds -= 0.5
    runner = StepRunner(store=shop.trial.store)
    for module in (look, look):
        monkeypatch.setattr(
            module,
            "requested_document",
            lambda options, _: nullcontext(
                RequestedDocument(shop.plan, shop.plan.products["bill"], options.key, runner)
            ),
        )
        monkeypatch.setattr(module, "reachable_settings", lambda _: nullcontext(Settings(bootstrap_servers="b:1")))
    monkeypatch.setattr(look, "stored_boundaries", lambda *_: ())
    for module_with_time in (look, look, choices):
        monkeypatch.setattr(module_with_time, "time", shop.trial.clock.now)
    return shop


def test_explain_says_what_a_document_waits_for(shop: Shop, ends: KnownEnds, capsys: Printed) -> None:
    ends.known = [TransactionEnd("7", {"public.orders": 1, "public.lines": 2, "public.audit": 4})]
    assert main(["explain", "bill", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:6] == [
        '{"id":5,"total":5,"lines":[3]}',
        "not published as it is now: it waits at its gate, and changed last 0.5 s ago",
        "  quiet: its rows must not change for 2.5 s more",
        "  every: its last message must be 9.5 s older",
        "  transaction 7 of topic app.transaction, read are 1 of 2 records of public.lines",
        "  it goes out in 1 min at the latest (`at_most`)",
    ]
    assert main(["explain", "bill", "5", "--json"]) == 0
    waits = json.loads(capsys.readouterr().out)["waits"]
    assert waits["transaction"] == {"topic": "app.transaction", "id": "7", "missing": None, "again": False}
    assert waits["quiet_until"] == f"1970-01-01T00:00:{shop.trial.clock.seconds + 2.5:06.3f}Z"


def test_get_shows_the_present_state_and_that_it_is_not_out(shop: Shop, capsys: Printed) -> None:
    assert main(["get", "bill", "5"]) == 0
    printed = capsys.readouterr()
    assert printed.out == '{"id":5,"total":5,"lines":[3]}\n'
    assert printed.err == (
        "bill 5: not published as it is now: it waits at its gate, and changed last 0.5 s ago; "
        "`statestore explain bill KEY` says why\n"
    )
    assert main(["get", "bill", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waits"] is True


def test_a_document_whose_time_has_come_waits_for_the_job(shop: Shop, capsys: Printed) -> None:
    shop.trial.clock.sleep(600)
    assert main(["explain", "bill", "5"]) == 0
    assert capsys.readouterr().out.splitlines()[2:3] == [
        "  its time has come: the job publishes it at once, or when it starts"
    ]


def test_a_document_that_is_out_waits_no_more(shop: Shop, capsys: Printed) -> None:
    shop.trial.finish()
    assert main(["get", "bill", "5", "--json"]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["waits"], printed.err) == (False, "")
