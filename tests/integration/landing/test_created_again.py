"""A product's topic that somebody deletes and creates again: a landing begins it, and drops what it has no message of."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread
from time import sleep

import pytest

from processor.job.landing.landing import Landing
from processor.job.landing.target import LandingError
from tests.integration.landing.conftest import LandingScene, create_again


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A landing looks at its topic often."""
    monkeypatch.setattr("processor.job.landing.landing.SAY_SECONDS", 0.5)


@contextmanager
def running(scene: LandingScene) -> Iterator[Landing]:
    """A landing that runs; its error is the test's."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            landing.run()
        except BaseException as error:
            errors.append(error)
            landing.stopping.set()

    with closing(scene.target()) as target:
        landing = scene.landing(target, once=False, stopping=Event())
        thread = Thread(target=run)
        thread.start()
        try:
            yield landing
        finally:
            landing.stopping.set()
            thread.join()
            assert errors == []


def wait(until: Callable[[], bool], landing: Landing) -> None:
    """Waits for an event of a landing that runs, which an error ends."""
    while not until():
        assert not landing.stopping.is_set()
        sleep(0.1)


def test_a_running_landing_begins_a_topic_that_was_created_again(target_scene: LandingScene) -> None:
    scene = target_scene
    for n in range(40):
        scene.publish(n, {"n": n})
    with running(scene) as landing:
        wait(lambda: landing.tally["landed"] == 40, landing)
        create_again(scene)
        for n in range(10, 25):
            scene.publish(n, {"n": -n})
        scene.publish(30, None)
        wait(lambda: scene.said("forgotten"), landing)
        scene.publish(99, {"n": 99})
        wait(lambda: "99" in str(scene.table()), landing)
    assert scene.table() == scene.expected()
    assert len(scene.table()) == 16
    (event,) = (one for one in scene.events if one.what == "replaced")
    assert "was deleted and created again: it lands from its first message" in event.text
    assert scene.compare().right


@pytest.mark.rest
def test_sequences_that_begin_again_replace_higher_ones(target_scene: LandingScene) -> None:
    """Also those of a tombstone, and of a document that the target refuses."""
    scene = target_scene
    for n in range(3):
        scene.publish(n, {"n": n}, sequence=70)
    scene.publish(1, None, sequence=71)
    scene.publish(2, {"n": "no number", "text": "nul \0"}, sequence=72)
    scene.land()
    create_again(scene)
    scene.sequences.clear()
    for n in range(3):
        scene.publish(n, {"n": 10 * n})
    landing = scene.land()
    assert scene.table() == scene.expected() == {f'{{"id":{n}}}': {"n": 10 * n} for n in range(3)}
    assert scene.compare().right
    assert not landing.earlier


@pytest.mark.rest
def test_an_empty_topic_removes_nothing(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.publish(1, {"n": 1})
    scene.publish(2, {"n": 2})
    with running(scene) as landing:
        wait(lambda: landing.tally["landed"] == 2, landing)
        create_again(scene)
        wait(lambda: scene.said("replaced"), landing)
        said = landing._said_at
        wait(lambda: landing._said_at > said, landing)
        assert len(scene.table()) == 2
        scene.publish(2, {"n": 3})
        wait(lambda: scene.said("forgotten"), landing)
    assert scene.table() == scene.expected() == {'{"id":2}': {"n": 3}}


@pytest.mark.rest
def test_a_topic_of_another_cluster_is_refused(target_scene: LandingScene) -> None:
    scene = target_scene
    scene.publish(1, {"n": 1})
    scene.land()
    with closing(scene.target()) as target, pytest.raises(LandingError, match="of another cluster: choose another"):
        target.open(scene.topic._replace(id="other", cluster="other"))


@pytest.mark.rest
def test_two_processes_of_a_landing_find_the_new_topic(target_scene: LandingScene) -> None:
    scene = target_scene
    for n in range(20):
        scene.publish(n, {"n": n})
    with running(scene) as first, running(scene) as second:
        wait(lambda: (first.tally + second.tally)["landed"] >= 20, first)
        create_again(scene)
        for n in range(5, 12):
            scene.publish(n, {"n": -n})
        wait(lambda: scene.table() == scene.expected(), first)
        wait(lambda: first.topic == second.topic == scene.topic, first)
    scene.land()
    assert scene.compare().right
