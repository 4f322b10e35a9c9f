"""A job that moves between DynamoDB and Postgres: it goes on with the copy as if nothing had happened."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from processor.errors import Fenced, ForeignPart, StatestoreError
from processor.job.copy_state import copy_state
from processor.job.worker import open_store
from processor.progress.identity import replace_identity, unfinished
from processor.settings.settings import Settings
from registry.errors import LeaseHeld
from registry.model import Lease
from statestore.copy_items import CopyCounts
from statestore.keys import Key
from statestore.store import Write

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
    pytest.mark.filterwarnings(
        "ignore:.*was deleted while still open:ResourceWarning"
    ),  # a refused start ends its process
]


def copy(scene: Scene, store: str, **changes: Any) -> CopyCounts:
    """Copies the state of the scene's job into the same table of another store, which the scene uses from then on."""
    target = replace(scene.settings, store=store, **changes)
    counts = copy_state(scene.settings, target, scene.registry, owner="a test", report=lambda _: None)
    scene.settings = target
    return counts


def sequences(scene: Scene) -> dict[str, list[int]]:
    """The sequences of each root, in the order of the topic."""
    found = defaultdict(list)
    for message in scene.published():
        found[message.key.decode()].append(int(dict(message.headers)["statestore.sequence"]))
    return dict(found)


def put(settings: Settings, write: Write) -> None:
    store = open_store(settings)
    store.create(settings.slots)
    store.write(write)
    store.close()


@pytest.fixture(scope="module")
def started(new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Scene:
    """A job on DynamoDB that has published three documents, and stopped."""
    scene = new_scene()
    names = ("ada", "bob", "cyd")
    scene.produce(*(rows.user(n, name) for n, name in enumerate(names)))
    scene.produce(*(rows.star(name, f"repo{n}") for name in names for n in range(4)))
    scene.run()
    return scene


def test_a_copy_is_refused_while_a_job_lives(started: Scene) -> None:
    with started.opened(), pytest.raises(LeaseHeld, match="runs already"):
        copy(started, "postgres")
    assert started.registry.binding().table == started.settings.table


def test_a_copy_onto_a_table_of_something_else_is_refused(started: Scene) -> None:
    other = f"{started.settings.table}_other"
    put(replace(started.settings, store="postgres", table=other), Write(Key("TABLE#user", "1"), {"_f": 1}))
    with pytest.raises(ForeignPart, match=f"postgres:{other} is foreign: it holds items of something else"):
        copy(started, "postgres", table=other)


def test_a_copy_onto_the_same_table_is_refused(started: Scene) -> None:
    with pytest.raises(StatestoreError, match="Give another table name"):
        copy(started, "dynamodb", region="us-west-2")


def test_a_copy_before_the_first_run_is_refused(new_scene: Callable[..., Scene]) -> None:
    with pytest.raises(StatestoreError, match="no job has run with this registry: there is nothing to copy"):
        copy(new_scene(), "postgres")


def test_a_copy_that_loses_the_lease_ends_without_effect_on_the_registry(started: Scene) -> None:
    settings, registry = started.settings, started.registry
    taken: list[Lease] = []

    def take_over(_: CopyCounts) -> None:
        taken.append(registry.take_lease(settings.job, "another", 2, take_over=True, expires_after=60))

    target = replace(settings, store="postgres", table=f"{settings.table}_lost")
    with pytest.raises(Fenced, match="lost its lease; another job took over"):
        copy_state(settings, target, registry, owner="a test", report=take_over)
    registry.release(taken[-1])
    assert registry.binding().table == settings.table


def test_a_copy_that_broke_off_is_no_table_for_a_job_and_is_repeated(started: Scene) -> None:
    there = replace(started.settings, store="postgres")
    put(there, replace_identity(unfinished(started.registry.binding().identity)))
    put(there, Write(Key("TABLE#user", "of the first try"), {"_f": 1}))
    for adopt in (False, True):
        with (
            pytest.raises(ForeignPart, match=r"into it is not finished.* or run with --store dynamodb --table"),
            started.opened(store="postgres", adopt=adopt),
        ):
            pass
    assert copy(started, "postgres").deleted == 1


def test_the_job_goes_on_with_the_copy_and_back_without_a_gap_or_a_repeat(
    started: Scene, rows: SimpleNamespace
) -> None:
    scene = started
    if scene.settings.store == "dynamodb":  # where this test runs alone
        copy(scene, "postgres")
    roots = scene.documents().keys()
    for turn, back in enumerate(("dynamodb", "postgres", "dynamodb")):
        before, store = sequences(scene), scene.settings.store
        assert scene.run().published == 0, "no document is published again"
        with pytest.raises(ForeignPart, match=f"is foreign: it is a copy of .*Run with --store {store} --table"):
            scene.run(store=back)
        scene.produce(rows.star("ada", f"later{turn}"), rows.gone(rows.star("bob", f"repo{turn}")))
        assert scene.run().published == 2
        after = sequences(scene)
        assert {root: len(after[root]) - len(before[root]) for root in roots} == dict(
            zip(roots, (1, 1, 0), strict=True)
        )
        assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in after.values())
        assert scene.documents() == scene.truth()
        counts = copy(scene, back)
        assert counts.equal == counts.read
        assert scene.registry.binding().table == scene.settings.place
