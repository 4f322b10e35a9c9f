"""The first record with one meaning settles how a real job reads the decimals of a column, for all later runs."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.decoding import FORMS, read_form
from processor.values.decimal_forms import FormNote, LearnedForm

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

COLUMNS = {"id": "int", "owner": "int", "price": "decimal(12,2)"}
ITEMS = {"items": {"many": "item", "on": {"owner": "id"}, "fields": ["id", "price"]}}


def item(number: int, price: str) -> tuple[str, Any, Any]:
    row = {"id": number, "owner": 1, "price": price}
    return "item", {"id": number}, {"before": None, "after": row, "op": "c", "source": {}}


def prices(scene: Scene) -> dict[int, float]:
    (document,) = scene.documents("sales").values()
    return {one["id"]: one["price"] for one in document["items"]}


def reasons(scene: Scene) -> dict[int, str]:
    return {letter[2]: letter[5] for letter in scene.rejected()}


@pytest.mark.rest
def test_no_run_and_no_lost_checkpoint_reads_a_column_by_two_forms(scene: Scene, rows: SimpleNamespace) -> None:
    scene.add_entity("item", COLUMNS, "sales", ITEMS)
    scene.produce(rows.user(1, "ada"), item(1, "1234"), partition=0)
    scene.run()
    scene.produce(item(2, "12.34"), item(3, "free"), item(4, "1000"), partition=0)
    scene.run()
    assert prices(scene) == {2: 12.34, 4: 1000}
    assert "it may be a number or Debezium's bytes" in reasons(scene)[0]
    since = f"the column has `decimals: text` since the record {scene.topic('item')}/0/1: declare"
    assert since in reasons(scene)[2]

    scene.produce(item(5, "BNI="), item(6, "2000"), partition=0)
    with scene.opened() as job:
        settled = LearnedForm("text", scene.topic("item"), 0, 1, 1)
        assert job.driver.progress.forms == {"item": {"price": settled}}
        assert list(map(read_form, job.driver.store.partition(FORMS))) == [FormNote("item", "price", settled)]
    scene.run()
    assert prices(scene) == {2: 12.34, 4: 1000, 6: 2000}
    assert since in reasons(scene)[4]

    scene.lose_checkpoint()
    scene.run()
    assert prices(scene) == {1: 1234, 2: 12.34, 4: 1000, 6: 2000}
    assert reasons(scene).keys() == {0, 2, 4}
    assert scene.documents("sales") == scene.truth("sales")

    scene.replay()
    assert prices(scene) == {1: 1234, 2: 12.34, 4: 1000, 6: 2000}
