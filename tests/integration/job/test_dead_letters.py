"""Records that break their contract: kept with all that is needed to look into them, counted, and a limit to them."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.errors import TooManyRejects
from processor.job.kafka.admin import Admin
from processor.job.run.topics import record_boundary

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

BROKEN = ("user", {"id": 1}, b'{"id": 1, "name": ')
NO_KEY = ("star", None, {"repo": "r", "note": ""})
TWO_KEYS = ("user", {"id": 1}, {"id": 2, "name": "eve"})
NO_INT = ("user", {"id": "one"}, {"id": "one", "name": "eve"})
NO_TEXT = ("star", b"\xff\xfe", {"who": "ada", "repo": "r"})


@pytest.mark.plain
def test_dead_letters_keep_their_bytes_their_place_and_the_reason_and_the_stream_goes_on(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(BROKEN, rows.user(1, "ada"), NO_KEY, TWO_KEYS, rows.star("ada", "first"), NO_INT, NO_TEXT)
    scene.produce(rows.star("ada", "first", "again"), rows.gone(rows.star("bob", "never")))
    done = scene.run()

    kept = {letter[:5]: letter[5] for letter in scene.rejected()}
    bad = [scene.lines[i] for i in (0, 2, 3, 5, 6)]
    assert set(kept) == {(r.topic, r.partition, r.offset, r.key, r.value) for r in bad}
    reasons = [kept[r.topic, r.partition, r.offset, r.key, r.value] for r in bad]
    for reason, part in zip(reasons, ("value", "who", "id", "id", "key"), strict=True):
        assert part in reason

    assert scene.documents() == {'{"id":1}': {"id": 1, "name": "ada", "stars": [{"repo": "first", "note": "again"}]}}
    assert done.tally["read"] == len(scene.lines) == 9
    assert done.tally["dead letters"] == 5
    assert done.tally["applied"] + done.tally["superseded"] + done.tally["ignored"] == 4
    assert done.tally["superseded"] == 1


@pytest.mark.rest
@pytest.mark.plain
def test_changes_of_a_row_in_two_partitions_are_dead_letters_until_a_new_epoch(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(rows.user(1, "ada"), partition=0)
    scene.run()
    scene.produce(rows.user(1, "late"), rows.user(1, "later"), rows.user(2, "bob"), partition=1)
    scene.run()
    assert [document["name"] for document in scene.documents().values()] == ["ada", "bob"]
    reasons = [letter[5] for letter in scene.rejected()]
    assert len(reasons) == 2
    topic = scene.topic("user")
    assert all(
        "the row has changes from partition 0 too" in reason and f"`statestore epoch {topic}`" in reason
        for reason in reasons
    )

    record_boundary(
        scene.registry, Admin(scene.settings.bootstrap_servers, {}), topic, who="a test", why="one partition"
    )
    scene.produce(rows.user(1, "sent again"), partition=1)
    scene.run()
    assert scene.documents()['{"id":1}']["name"] == "sent again"
    assert len(scene.rejected()) == 2


@pytest.mark.rest
def test_more_dead_letters_than_the_limit_stop_the_job_before_the_batch_is_committed(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(BROKEN, NO_KEY, TWO_KEYS, rows.user(1, "ada"))
    with pytest.raises(TooManyRejects, match=r"3 of 4 records .* max_reject_share = 0\.05 allows: topic "):
        scene.run(max_reject_free=0)
    assert scene.committed() == []
    assert len(scene.rejected()) == 3

    assert scene.run().tally["dead letters"] == 3  # the batch comes again, under a limit that allows them
    assert scene.committed() == [0]
    assert scene.documents() == {'{"id":1}': {"id": 1, "name": "ada", "stars": []}}
