"""The items of earlier releases are read by this one, and this one writes items that those read."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.identity import (
    IDENTITY,
    PublishedTopic,
    identity_in,
    read_sequences,
    write_identity,
    write_published_topic,
    write_sequence,
)
from processor.engine.protocol.ledger import (
    Mark,
    group_key,
    group_partition,
    message_key,
    read_entry,
    read_run,
    run_key,
)
from processor.engine.protocol.pending import FanOuts
from processor.engine.protocol.replays import PARTITION, drop, ended_replays
from processor.engine.protocol.segments import read_changes
from processor.engine.protocol.walks import read_walk
from processor.engine.rounds.trial import Trial
from processor.language.definitions.load import load
from statestore.items import FORMAT, key_of_item, read_row
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item
from tests.releases.release import (
    DEFINITIONS,
    RELEASES,
    SETTINGS,
    first_records,
    later_records,
    shapes,
    stored_items,
)

FOLDERS = sorted(RELEASES.iterdir())
PLAN = plan_alone(load(DEFINITIONS), SETTINGS.slots)
OWN = ("_", "GSI_", "prev_", "ttl")
"""How attributes begin that a release never takes for a column of a row."""
every_release = pytest.mark.parametrize("release", FOLDERS, ids=lambda folder: folder.name)


def story_items() -> list[Item]:
    """The items that this release writes in the story of `tests.releases.record`."""
    store = MemoryStore(SETTINGS.slots)
    first, later = (Trial(plan=PLAN, settings=SETTINGS, run=run, other_store=store) for run in (1, 2))
    for trial in (first, later):
        trial.driver.start()
        trial.driver.adopt(PLAN)
        if trial is first:
            trial.batch(first_records())
    later.committed = first.committed
    later.batch(later_records())
    letter = first_records()[1]
    notes = [
        write_identity("id", 1),
        *(write_sequence(name, 0, "t", group_partition(p.ledger), p.number) for name, p in PLAN.products.items()),
    ]
    notes += [write_published_topic(name, PublishedTopic("t", "id", 1, 1)) for name in PLAN.products]
    for write in (*notes, drop(letter, who="an operator", why="given up", at=datetime(2026, 11, 22, tzinfo=UTC))):
        store.write(write)
    return list(store._items.values())


@every_release
def test_this_release_writes_the_attributes_that_an_earlier_one_reads(release: Path) -> None:
    before, now = shapes(stored_items(release)), shapes(story_items())
    assert before.keys() <= now.keys()
    for kind, attributes in before.items():
        assert attributes <= now[kind], kind
        added = {name for name, _ in now[kind] - attributes}
        assert all(name.startswith(OWN) for name in added if "row" in kind or kind.startswith("delete marker")), kind


@every_release
def test_every_item_of_an_earlier_release_has_a_format_that_this_one_reads(release: Path) -> None:
    assert {item["_f"] <= FORMAT for item in stored_items(release)} == {True}


@every_release
def test_the_items_of_an_earlier_release_mean_the_same(release: Path) -> None:
    items = {key_of_item(item): item for item in stored_items(release)}
    rows = {key.sk: read_row(item) for key, item in items.items() if key.pk == "TABLE#user"}
    assert {sk: row.columns for sk, row in rows.items()} == {
        "1": {"id": 1, "name": "ada"},
        "3": {"id": 3, "name": "ada"},
    }
    assert (rows["1"].more, [p.key for p in rows["3"].pending]) == ({"note": {"since": 2016}}, ["cyd"])
    assert read_row(items[PLAN.entities["star"].key("cyd#r9")]).columns is None
    team = read_row(items[Key("TABLE#team", "1")])
    assert team.columns == {"id": 1, "member_ids": [1, 4]}
    assert team.edges == {("member_ids[]", "1"), ("member_ids[]", "4")}
    ledger = PLAN.products["team"].ledger
    item = items[group_key(ledger, "1")]
    entry = read_entry(item, ledger.number)
    assert (entry.seq, entry.mark, message_key(item), entry.version) == (2, Mark(2, 0, 1, 0), '{"id":1}', 1)
    assert [read_run(n, items[run_key(n)]).through for n in (1, 2)] == [0, 0]
    assert len(identity_in(items[IDENTITY])) == 36
    known = {(name, group_partition(product.ledger), ""): 0 for name, product in PLAN.products.items()}
    assert read_sequences(item for key, item in items.items() if key.pk == "SEQUENCES") == known
    (dropped,) = ended_replays(item for key, item in items.items() if key.pk == PARTITION).values()
    assert dropped == "dropped by an operator at 2026-11-22T00:00:00+00:00: given up"


@every_release
def test_the_open_work_of_an_earlier_release_goes_on(release: Path) -> None:
    items = stored_items(release)
    opened = [change for item in items if item["PK"].startswith("OPEN") for change in read_changes(item)]
    assert {(change.entity, change.key.sk) for change in opened} == {("star", "cyd#r9"), ("user", "3")}
    fan_outs = FanOuts(products=PLAN.products, run=3)
    assert fan_outs.reload(items) == []
    assert [(one.product, one.key, one.pages) for (one,) in fan_outs.next()] == [("profile", "ada", 0)]
    walks = dict(read_walk(item) for item in items if item["PK"] == "WALKS")
    assert {" ".join(name) for name, walk in walks.items() if walk.done} == {
        *("fill star", "fill team", "fill user"),
        *("publish profile", "publish team"),
    }
