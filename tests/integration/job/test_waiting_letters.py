"""What waits is the first number: the registry counts each record that a job refused once, over starts, crashes and lost
checkpoints, until somebody replays or drops it."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from processor.errors import TooManyRejects
from processor.job.kafka.reader import read_topic
from processor.job.metrics.status import letters_json, letters_text
from processor.job.run.monitor import JobMonitor
from processor.tools.operate.letters import drop_letters, preview_places
from processor.values.dead_letters import read_dead_letters
from registry.edits.edit import Signature
from registry.model import LetterFilter

Scene = Any  # conftest's
pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

BROKEN = ("user", {"id": 1}, b'{"id": 1, "name": ')
NO_INT = ("user", {"id": "one"}, {"id": "one", "name": "eve"})
NUMBER = ("star", {"who": "ada", "repo": "r"}, {"who": "ada", "repo": "r", "note": 7})


def waiting(scene: Scene) -> dict[str, int]:
    """How many letters wait, by code and column."""
    return {f"{one.code} {one.column}".strip(): one.letters for one in scene.registry.letters.waiting()}


def test_a_letter_counts_once_however_often_the_job_reads_its_record(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(BROKEN, NO_INT, NUMBER, rows.user(1, "ada"))
    with pytest.raises(TooManyRejects):
        scene.run(max_reject_free=0)
    assert waiting(scene) == {"not-json": 1, "key-type id": 1, "column-type note": 1}, "the topic has the letters"
    scene.run()
    scene.lose_checkpoint()
    scene.run()
    assert len(scene.rejected()) == 9, "the topic has each letter three times"
    assert sum(waiting(scene).values()) == 3
    records = read_topic(scene.settings.bootstrap_servers, {}, scene.settings.dead_letter_topic)
    assert len(read_dead_letters(records)) == 3

    scene.widen()
    places = scene.registry.letters.places(LetterFilter())
    shown = preview_places(scene.settings, scene.registry, places, scene.plan)
    assert (shown.letters, shown.readable, sum(shown.refused.values())) == (3, 1, 2)
    assert sorted(outcome for _, outcome in scene.replay()) == ["applied", "refused", "refused"]
    assert waiting(scene) == {"not-json": 1, "key-type id": 1}


def test_the_report_of_a_job_that_starts_has_the_letters_of_earlier_runs(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(BROKEN, NO_INT)
    scene.run()
    scene.produce(rows.user(1, "ada"))
    with scene.opened() as job:
        monitor = JobMonitor(job)
        monitor._look_at_letters(scene.registry)
        report = monitor.state({})
    assert report["dead_letters"] == 0, "of this run"
    assert letters_text(report["letters_waiting"], time.time()).startswith("2 dead letters wait, the oldest for ")


def test_the_account_of_a_registry_without_one_is_filled_once_at_the_start(scene: Scene) -> None:
    scene.produce(BROKEN, NO_INT)
    scene.run()
    place, other = scene.registry.letters.places(LetterFilter())
    with scene.opened() as job:
        drop_letters(scene.registry, job.driver.store, [place], Signature("ann", "a test"), "code not-json")
    scene.registry.letters.forget([place, other])
    assert scene.registry.letters.is_empty()
    with scene.opened():
        pass
    assert scene.registry.letters.places(LetterFilter()) == (other,)
    assert not scene.registry.letters.is_empty()


def test_a_drop_of_a_group_is_shown_afterwards_with_who_and_why(scene: Scene) -> None:
    scene.produce(BROKEN, NO_INT)
    scene.run()
    group = LetterFilter(code="not-json")
    with scene.opened() as job:
        places = scene.registry.letters.places(group)
        drop_letters(scene.registry, job.driver.store, places, Signature("ann", "sent again"), group)
    assert waiting(scene) == {"key-type id": 1}
    (result,) = scene.registry.replays.recent()
    assert (result.act, result.who, result.why, result.selection) == ("drop", "ann", "sent again", "code not-json")
    assert result.outcomes == {"dropped": 1}
    assert letters_json(scene.registry.letters.waiting())[0]["letters"] == 1
