"""`plan --diff` over the state of a job: its counts are those of the messages that the job sends after the apply."""

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.engine.plan.planning import requirements_of
from processor.environment.stores.kinds import open_store
from processor.language.definitions.load import load
from statestore.store import Item
from tests.integration.job.profile_definitions import profile_definitions
from tests.integration.job.test_postgres_job import set_environment

Scene = Any  # conftest's
pytestmark = [pytest.mark.plain, pytest.mark.rest]


def changed_definitions(job: str) -> dict[str, str]:
    """A profile that loses users and a field, and shows stars by their note, over a slot that no row has; and a new product."""
    stars = {"many": "star", "on": {"note": "name"}, "fields": ["repo"], "order_by": ["repo"]}
    heading = {"product": "profile", "topic": f"{job}.profile", "root": "user", "where": "id < 25"}
    profile = {**heading, "fields": ["id"], "embed": {"stars": stars}}
    first = {"one": "star", "on": {"who": "name"}, "order_by": ["repo"], "value": "repo"}
    heading = {"product": "firsts", "topic": f"{job}.firsts", "root": "user"}
    firsts = {**heading, "fields": ["id"], "embed": {"first": first}}
    return profile_definitions(job) | {
        "products/profile.yaml": json.dumps(profile),
        "products/firsts.yaml": json.dumps(firsts),
    }


def all_items(scene: Scene) -> list[Item]:
    """Everything in the table."""
    with closing(open_store(scene.settings)) as store:
        found, page = list[Item](), store.scan(None, 1_000)
        while page.after is not None:
            found += page.items
            page = store.scan(page.after, 1_000)
        return sorted([*found, *page.items], key=lambda item: (item["PK"], item["SK"]))


def test_a_diff_counts_the_documents_and_the_messages_of_the_apply_and_writes_nothing(
    scene: Scene,
    rows: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(40)))
    stars = [rows.star(f"u{n % 30}", f"r{n}", note=f"u{n % 7}") for n in range(60)]
    scene.produce(*stars, rows.gone(rows.user(3, "")), rows.gone(stars[0]))
    scene.run()
    before, sent = scene.documents(), len(scene.published())
    texts = changed_definitions(scene.settings.job)
    for name, text in texts.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    set_environment(monkeypatch, scene.settings)
    items = all_items(scene)
    words = ["plan", "--no-price", "--diff", "--definitions", str(tmp_path)]
    assert main([*words, "--json"]) == 0
    found = {one["product"]: one for one in json.loads(capsys.readouterr().out)["diff"]["products"]}
    assert main([*words, "--sample", "10", "--seed", "1"]) == 0
    assert "of 10 roots (a sample: 25.6% of 39)" in capsys.readouterr().out
    assert all_items(scene) == items

    scene.registry.apply(requirements_of(load(texts)), who="a test", why="another profile")
    scene.run()
    assert scene.registry.snapshot().waiting == ()
    after, firsts = scene.documents(), scene.documents("firsts")
    profile = found["profile"]
    assert profile["differ"] == sum(before.get(key) != after.get(key) for key in before | after)
    assert (profile["before"]["documents"], profile["after"]["documents"]) == (len(before), len(after))
    assert profile["messages"] == len(scene.published()) - sent
    assert profile["tombstones"] == len(before) - len(after)
    groups = {(one["kind"], one["place"]): one["documents"] for one in profile["groups"]}
    both = before.keys() & after.keys()
    assert groups["document gone", ""] == len(before.keys() - after.keys())
    assert groups["field removed", "name"] == len(both)
    assert groups["list longer", "stars"] == sum(len(after[k]["stars"]) > len(before[k]["stars"]) for k in both)
    assert groups["list shorter", "stars"] == sum(len(after[k]["stars"]) < len(before[k]["stars"]) for k in both)
    new = found["firsts"]
    assert (new["new"], new["messages"], new["after"]["documents"]) == (
        True,
        len(scene.published("firsts")),
        len(firsts),
    )
    (first,) = new["joins"]
    assert first["nothing"] == sum(document["first"] is None for document in firsts.values())
    assert main(["plan", "--no-price", "--diff", "--definitions", str(tmp_path)]) == 0
    again = capsys.readouterr().out
    assert again.startswith("nothing would change\n")
    assert again.endswith("\n\nno product changes, so no document differs\n")
