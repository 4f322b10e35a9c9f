"""One product that fails: it is stopped and named, the others go on, and what it owes waits in the table for the next start."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor import batch
from processor.cli.main import main
from processor.definitions.load import load
from processor.model.change import Record, Value
from processor.model.document import Gone, Match, Renderer
from processor.model.open_changes import PARTITION
from processor.model.owed import Owed
from processor.planning import plan_alone
from processor.settings import Settings
from processor.steps import publish
from processor.trial import Trial
from statestore.errors import Transient
from statestore.keys import Key
from statestore.store import Delete

DEFINITIONS = {
    "entities.yaml": json.dumps({"user": {"key": ["id"], "columns": {"id": "int", "name": "string"}}}),
    "good.yaml": json.dumps({"product": "good", "root": "user", "fields": ["id"]}),
    "odd.yaml": json.dumps({"product": "odd", "root": "user", "fields": ["id", "name"]}),
}


@pytest.fixture
def unforeseen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Documents of `odd` about a Bob cannot be made."""

    class Unforeseen(Renderer):
        def document(self, top: Match) -> Value | Gone:
            if self.product.name == "odd" and top.columns["name"] == "Bob":
                raise ValueError("no Bobs")
            return Renderer.document(self, top)

    with monkeypatch.context() as patched:
        patched.setattr(batch, "Renderer", Unforeseen)
        yield


def trial() -> Trial:
    return Trial(plan=plan_alone(load(DEFINITIONS), 20), settings=Settings())


def user(number: int, name: str, offset: int) -> Record:
    value = json.dumps({"id": number, "name": name}).encode()
    return Record(topic="user", partition=0, offset=offset, key=None, value=value)


def sent(trial: Trial, topic: str) -> list[Any]:
    return [json.loads(m.value or b"null")["id"] for m in trial.published.messages if m.topic == topic]


def owed(trial: Trial) -> dict[str, Any]:
    debts = Owed(products=trial.plan.products, run=2)
    debts.reloaded(trial.store.partition(PARTITION))
    return {key.sk: roots for key, roots in debts.next().items()}


@pytest.mark.usefixtures("unforeseen")
def test_a_document_that_cannot_be_made_stops_its_product_and_no_other() -> None:
    one = trial()
    one.batch([user(1, "Ann", 0), user(2, "Bob", 1)])
    one.batch([user(1, "Anna", 2), user(3, "Cyd", 3)])
    one.finish()
    assert sorted(sent(one, "good")) == [1, 2, 3]
    assert sent(one, "odd") == [1]
    cause = "the document of 2 cannot be made (ValueError: no Bobs): correct the product or the row"
    assert one.owed.stopped == {"odd": cause}
    assert {root for roots in owed(one).values() for root in roots} == {("odd", "1"), ("odd", "2"), ("odd", "3")}


def test_a_document_larger_than_a_message_stops_its_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "MAX_MESSAGE_BYTES", 40)
    one = trial()
    one.batch([user(1, "Ann", 0), user(2, "B" * 40, 1)])
    one.finish()
    assert one.owed.stopped == {
        "odd": "the document of 2 has 58 bytes, more than the 40 of a message: give its lists a limit"
    }
    assert sorted(sent(one, "good")) == [1, 2]


def test_what_the_store_fails_of_is_no_product_s_failure() -> None:
    one = trial()
    one.store.get = _throttled  # type: ignore[method-assign]
    with pytest.raises(Transient):
        one.batch([user(1, "Ann", 0)])
    assert one.owed.stopped == {}


@pytest.mark.usefixtures("unforeseen")
def test_try_names_the_product_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in DEFINITIONS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "rows.jsonl").write_text('{"topic": "user", "value": {"id": 2, "name": "Bob"}}\n')
    assert main(["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "rows.jsonl")]) == 1
    shown = capsys.readouterr()
    assert '{"id":2}' in shown.out.replace(" ", "")
    assert "product odd stopped: the document of 2 cannot be made (ValueError: no Bobs)" in shown.err


def test_debts_are_worked_off_some_roots_a_round_and_forgotten_item_by_item() -> None:
    before = Owed(products=("a", "b"), run=1)
    roots = [("a", f"{n:04d}") for n in range(2_500)] + [("b", "1")]
    writes = before.asked(7, roots)
    assert before.asked(8, roots[:10]) == []
    assert [write.key.sk for write in writes] == [f"owed#0000000001.0000000007.00000{n}" for n in range(4)]
    debts = Owed(products=("a", "b"), run=2)
    assert debts.reloaded({"PK": w.key.pk, "SK": w.key.sk, **w.set} for w in writes) == []
    debts.failed({"b": "why"})
    paid = []
    while todo := debts.next():
        assert sum(map(len, todo.values())) <= 1_000
        paid += [root for roots in todo.values() for root in roots]
        assert debts.paid(todo) == [Delete(key=key) for key in todo]
    assert paid == roots[:-1]


def test_an_item_holds_no_more_than_the_table_takes() -> None:
    writes = Owed(products=("a",), run=1).asked(1, [("a", f"{n}" + "\N{SNOWMAN}" * 340) for n in range(400)])
    assert max(len(write.set["roots"]) for write in writes) < 400_000
    assert len(writes) > 1


def test_the_debts_of_a_product_that_is_gone_are_forgotten() -> None:
    (write,) = Owed(products=("a",), run=1).asked(1, [("a", "1")])
    item = {"PK": write.key.pk, "SK": write.key.sk, **write.set}
    assert Owed(products=("b",), run=2).reloaded([item]) == [Delete(key=Key(PARTITION, write.key.sk))]


def _throttled(*_: object) -> Any:
    raise Transient("throttled")
