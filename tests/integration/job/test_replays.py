"""Dead letters that are replayed once the definitions take them: documents as if they had been good from the first."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.values.entity import PLACEHOLDER as LEFT_OUT

Scene = Any  # conftest's
pytestmark = pytest.mark.plain


@pytest.mark.rest
def test_documents_are_those_of_a_history_without_dead_letters(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"), ("user", {"id": 3}, b"{"), partition=0)
    scene.produce(
        rows.star("ada", "new", 7),  # good by the next definitions
        rows.star("bob", "changed", "old"),
        rows.star("bob", "changed", 8),
        rows.star("ada", "later", 9),
        rows.star("ada", "later", "newer"),
        rows.star("ada", "filled", 10),
        rows.star("ada", "filled", LEFT_OUT),
        partition=0,
    )
    assert scene.run().tally["dead letters"] == 5
    assert scene.replay() == [(o, "refused") for o in (0, 2, 3, 5, 2)]  # the definitions are as they were

    scene.widen()
    read = scene.run().tally["read"]
    assert read == 0
    ended = scene.replay()
    assert sorted(ended) == [(0, "applied"), (2, "applied"), (2, "refused"), (3, "superseded"), (5, "superseded")]
    documents = scene.documents()
    assert documents == scene.truth()
    assert {s["repo"]: s["note"] for s in documents['{"id":1}']["stars"]} == {"new": 7, "later": "newer", "filled": 10}

    before = scene.published()
    assert scene.replay() == [(2, "refused")]
    assert scene.published() == before
    scene.lose_checkpoint()
    scene.run()
    assert scene.documents() == documents
