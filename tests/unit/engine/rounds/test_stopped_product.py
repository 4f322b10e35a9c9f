"""A product that fails stops, and the other products go on. Its backlog waits in the table for the next start."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.pending import PARTITION, Backlog
from processor.engine.rounds import publish_stage
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.product.document import Gone, Match, Renderer
from processor.values.record import Record
from statestore.keys import Key
from statestore.store import Delete, Transient

DEFINITIONS = {
    "entities.yaml": json.dumps({"user": {"key": ["id"], "columns": {"id": "int", "name": "string"}}}),
    "good.yaml": json.dumps({"product": "good", "root": "user", "fields": ["id"]}),
    "odd.yaml": json.dumps({"product": "odd", "root": "user", "fields": ["id", "name"]}),
}


@pytest.fixture
def no_bobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The renderer of `odd` fails for each user whose name is Bob."""

    class FailingRenderer(Renderer):
        def text(self, top: Match) -> str | Gone:
            if self.product.name == "odd" and top.columns["name"] == "Bob":
                raise ValueError("no Bobs")
            return Renderer.text(self, top)

    with monkeypatch.context() as patched:
        patched.setattr(publish_stage, "Renderer", FailingRenderer)
        yield


def trial() -> Trial:
    return Trial(plan=plan_alone(load(DEFINITIONS), 20), settings=Settings(log_values=True))


def user(number: int, name: str, offset: int) -> Record:
    value = json.dumps({"id": number, "name": name}).encode()
    return Record(topic="user", partition=0, offset=offset, key=None, value=value)


def sent(trial: Trial, topic: str) -> list[Any]:
    return [json.loads(m.value or b"null")["id"] for m in trial.published.messages if m.topic == topic]


def waiting(trial: Trial) -> dict[str, Any]:
    backlog = Backlog(products=trial.plan.products, run=2)
    backlog.reload(trial.store.partition(PARTITION))
    return {key.sk: roots for key, roots in backlog.next().items()}


@pytest.mark.usefixtures("no_bobs")
def test_a_document_that_cannot_be_made_stops_only_its_product() -> None:
    job = trial()
    job.batch([user(1, "Ann", 0), user(2, "Bob", 1)])
    job.batch([user(1, "Anna", 2), user(3, "Cyd", 3)])
    job.finish()
    assert sorted(sent(job, "good")) == [1, 2, 3]
    assert sent(job, "odd") == [1]
    cause = "the document of 2 cannot be made (ValueError: no Bobs): correct the product or the row"
    assert job.stopped == {"odd": cause}
    assert {root for roots in waiting(job).values() for root in roots} == {("odd", "1"), ("odd", "2"), ("odd", "3")}


def test_an_error_of_the_store_does_not_stop_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    job = trial()
    monkeypatch.setattr(job.store, "get", _throttled)
    with pytest.raises(Transient):
        job.batch([user(1, "Ann", 0)])
    assert job.stopped == {}


@pytest.mark.usefixtures("no_bobs")
def test_try_names_the_stopped_product_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in DEFINITIONS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "rows.jsonl").write_text('{"topic": "user", "value": {"id": 2, "name": "Bob"}}\n')
    assert main(["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "rows.jsonl")]) == 1
    shown = capsys.readouterr()
    assert '{"id":2}' in shown.out.replace(" ", "")
    assert "product odd stopped: the document of 2 cannot be made (ValueError: no Bobs)" in shown.err


def test_each_round_publishes_some_items_of_the_backlog() -> None:
    before = Backlog(products=("a", "b"), run=1)
    roots = [("a", f"{n:04d}") for n in range(2_500)] + [("b", "1")]
    writes = before.add(7, roots)
    assert before.add(8, roots[:10]) == []
    assert [write.key.sk for write in writes] == [f"backlog#0000000001.0000000007.00000{n}" for n in range(4)]
    backlog = Backlog(products=("a", "b"), run=2)
    assert backlog.reload({"PK": w.key.pk, "SK": w.key.sk, **w.set} for w in writes) == []
    backlog.stop({"b": "why"})
    published = []
    while todo := backlog.next():
        assert sum(map(len, todo.values())) <= 1_000
        published += [root for roots in todo.values() for root in roots]
        assert backlog.remove(todo) == [Delete(key=key) for key in todo]
    assert published == roots[:-1]


def test_an_item_of_the_backlog_fits_into_the_table() -> None:
    writes = Backlog(products=("a",), run=1).add(1, [("a", f"{n}" + "\N{SNOWMAN}" * 340) for n in range(400)])
    assert max(len(write.set["roots"]) for write in writes) < 400_000
    assert len(writes) > 1


def test_a_start_drops_the_backlog_of_a_product_that_is_gone() -> None:
    (write,) = Backlog(products=("a",), run=1).add(1, [("a", "1")])
    item = {"PK": write.key.pk, "SK": write.key.sk, **write.set}
    assert Backlog(products=("b",), run=2).reload([item]) == [Delete(key=Key(PARTITION, write.key.sk))]


def _throttled(*_: object) -> Any:
    raise Transient("throttled")
