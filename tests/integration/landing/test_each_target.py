"""What every target of a landing does alike."""

from contextlib import closing
from threading import Event, Thread

import pytest

from tests.integration.landing.conftest import LandingScene


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
