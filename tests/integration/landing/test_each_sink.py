"""What every sink of a landing does alike: a new kind in `SINKS` needs a scene in conftest.py, and passes these tests."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from threading import Event, Thread
from typing import Any

import pytest

from processor.job.kafka.reader import read_topic
from processor.job.landing.target import LandedMessage, LandedTopic, LandingError, Target, read_messages
from tests.integration.landing.conftest import PARTITIONS, PRODUCT, LandingScene


def test_an_older_message_brings_nothing_back(target_scene: LandingScene) -> None:
    """After more partitions a key has a new one, and another process may read the old partition late."""
    scene = target_scene
    scene.publish(1, {"n": 1})
    scene.publish(2, {"n": 1})
    scene.land()
    scene.publish(1, None, partition=0)
    scene.publish(2, {"n": 2}, partition=0)
    scene.land()
    scene.publish(1, {"n": 1}, sequence=1, partition=1)
    scene.publish(2, {"n": 1}, sequence=1, partition=1)
    assert scene.land().tally["superseded"] == 2
    assert scene.table() == {'{"id":2}': {"n": 2}}
    scene.publish(1, {"n": 3})
    scene.land()
    assert scene.table() == {'{"id":1}': {"n": 3}, '{"id":2}': {"n": 2}}


def test_it_holds_the_last_document_of_each_root(target_scene: LandingScene) -> None:
    scene = target_scene
    for n in range(10):
        scene.publish(n, {"n": n, "name": f"n{n}", "big": 2**53 + 1, "price": 1.5})
    scene.publish(3, {"n": 33})
    scene.publish(4, None)
    scene.publish(11, {"n": 11}, product="city")
    tally = scene.land().tally
    del scene.last['{"id":11}']
    assert scene.table() == scene.expected()
    assert tally["foreign"] == 1
    assert next(scene.compare().lines()).startswith("equal 9, on the way 0, missing 0")


@pytest.mark.rest
def test_messages_that_come_again_change_nothing(target_scene: LandingScene) -> None:
    scene = target_scene
    for n in range(40):
        scene.publish(n % 10, None if n % 7 == 0 else {"n": n})
    scene.land()
    messages = list(read_messages(read_topic(scene.broker, {}, scene.topic.name), PRODUCT))
    with closing(scene.target()) as target:
        target.open(scene.topic)
        before = target.offsets(range(PARTITIONS))
        target.land(messages[:20], {})
        target.land(messages, before)
        assert target.offsets(range(PARTITIONS)) == before
    assert scene.table() == scene.expected()
    assert scene.compare().right


class KilledTarget:
    """A target whose process dies at the n-th batch: before the target gets it, or after the target has taken it."""

    def __init__(self, target: Target, batch: int, *, after: bool) -> None:
        self._target, self._left, self._after = target, batch, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise KeyboardInterrupt
        counts = self._target.land(messages, ends)
        if self._left == 0:
            raise KeyboardInterrupt
        return counts


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.rest), True])
def test_a_landing_dies_at_each_batch(target_scene: LandingScene, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    scene = target_scene
    monkeypatch.setattr("processor.job.landing.landing.BATCH", 7)
    for n in range(60):
        scene.publish(n % 20, None if n % 7 == 0 else {"n": n})
    for batch in (1, 2, 3, 2, 1):
        with closing(scene.target()) as target:
            killed: Any = KilledTarget(target, batch, after=after)
            killed.open(scene.topic)
            with pytest.raises(KeyboardInterrupt):
                scene.landing(killed).run()
    scene.land()
    assert scene.table() == scene.expected()
    assert scene.compare().right


def test_a_document_that_it_refuses_leaves_the_earlier_one_and_waits_for_a_later_one(
    target_scene: LandingScene,
) -> None:
    scene = target_scene
    for n in range(5):
        scene.publish(n, {"n": n})
    scene.publish(2, scene.refused)
    scene.publish(7, scene.refused)
    assert scene.land().tally["refused"] == 2
    assert scene.table() == {f'{{"id":{n}}}': {"n": n} for n in range(5)}
    found = scene.compare()
    assert not found.right
    assert found.missing == found.different == []
    assert [(one.key, one.sequence) for one in found.refused] == [('{"id":2}', 2), ('{"id":7}', 1)]
    assert all(one.reason for one in found.refused)
    scene.publish(2, {"n": 22})
    scene.publish(7, None)
    scene.land()
    assert scene.table() == scene.expected()
    assert scene.compare().right
    with closing(scene.target()) as target:
        target.open(scene.topic)
        assert target.refused() == 0


def test_the_comparison_names_what_somebody_changed(target_scene: LandingScene) -> None:
    scene = target_scene
    for n in range(6):
        scene.publish(n, {"n": n, "price": 1.50, "list": [1, {"b": 1, "a": 2}]})
    scene.publish(5, None)
    scene.land()
    assert (
        next(scene.compare().lines()) == "equal 5, on the way 0, missing 0, not in the topic 0, different 0, refused 0"
    )
    scene.tamper()
    scene.publish(2, {"n": 22})
    found = scene.compare()
    extra = [one.replace(" ", "") for one in found.extra]
    assert (found.different, found.missing, extra) == (['{"id":0}'], ['{"id":1}'], ['{"id":9}'])
    assert (found.equal, found.waiting) == (2, 1)


@pytest.mark.rest
def test_no_key_of_a_deleted_document_stays(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.publish("ada@example.org", scene.refused)
    scene.publish("ada@example.org", {"name": "lovelace"})
    scene.publish("bob@example.org", {"name": "bob"})
    scene.publish("ada@example.org", scene.refused)
    scene.land()
    scene.publish("ada@example.org", None)
    scene.land()
    assert "bob@" in scene.everything()
    assert not any(word in scene.everything() for word in ("ada@", "lovelace"))


@pytest.mark.rest
def test_a_landing_keeps_its_id_until_its_place_is_gone(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.publish(1, {"n": 1})
    scene.land()
    with closing(scene.target()) as target:
        id_ = target.open(scene.topic).id
        assert id_
        assert target.open(scene.topic).id == target.check(scene.topic) == id_
    scene.drop()
    scene.land()
    assert scene.table() == {'{"id":1}': {"n": 1}}
    with closing(scene.target()) as target:
        assert target.open(scene.topic).id != id_


@pytest.mark.rest
def test_a_place_keeps_its_topic(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.land()
    with closing(scene.target()) as target:
        with pytest.raises(LandingError, match=f"holds topic {scene.topic.name} of product person: choose another"):
            target.open(LandedTopic(PRODUCT, "other", "id"))
        with pytest.raises(LandingError, match=f"holds topic {scene.topic.name} of another cluster"):
            target.open(scene.topic._replace(id="another", cluster="another"))


@pytest.mark.rest
def test_a_place_that_no_landing_made_stays_as_it_is(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.occupy()
    with (
        pytest.raises(LandingError, match="no landing made it: choose another --into"),
        closing(scene.target()) as target,
    ):
        target.open(scene.topic)


@pytest.mark.rest
def test_two_processes_share_the_partitions(target_scene: LandingScene) -> None:
    scene, stopping = target_scene, Event()
    with closing(scene.target()) as first, closing(scene.target()) as second:
        first.open(scene.topic)
        landings = [scene.landing(target, once=False, stopping=stopping) for target in (first, second)]
        threads = [Thread(target=landing.run) for landing in landings]
        for thread in threads:
            thread.start()
        n = 0
        while all(thread.is_alive() for thread in threads) and not all(one.tally["landed"] for one in landings):
            scene.publish(n % 50, {"n": n})
            n += 1
        stopping.set()
        for thread in threads:
            thread.join()
    assert all(one.tally["landed"] for one in landings)
    scene.land()
    assert scene.table() == scene.expected()
