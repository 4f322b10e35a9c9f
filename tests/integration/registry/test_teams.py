"""Two teams share a registry: `apply`, `plan` and `run` refuse definitions that break the registry's other products."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from processor.cli.main import main
from processor.engine.plan.planning import plan_of
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.job.run.open_job import prepare_plan
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from registry.edits import operations
from registry.edits.edit import Signature
from registry.errors import TopicTaken
from registry.model import EpochBoundary
from registry.repository import Registry

Verb = Callable[..., int]
USER = "user: {topic: t.user, key: [id], columns: {id: int, name: string, city: string}}"
STAR = "star: {topic: t.star, key: [id], columns: {id: int, who: string}}"
PROFILE = "{product: profile, root: user, fields: {id: id, town: lower(city)}}"


@pytest.fixture
def verb(postgres_url: str, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verb:
    """Runs a verb with the definitions of a team. A flag may not hold the password of the address, a variable may."""
    monkeypatch.setenv("STATESTORE_REGISTRY", postgres_url)

    def run(name: str, entities: str, *products: str) -> int:
        folder = tmp_path / "definitions"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        (folder / "entities.yaml").write_text(entities)
        for number, product in enumerate(products):
            (folder / f"{number}.yaml").write_text(product)
        return main([name, "--definitions", str(folder), "--registry-schema", schema, "--slots", "5"])

    return run


BREAKS = {
    "a column that another product reads is gone": (
        (USER.replace(", city: string", ""), "{product: names, root: user, fields: [id, name]}"),
        [
            "entity user: column city is declared no more, but product profile, version 1, reads it: keep the column until the "
            "product is removed, or until a version of it that does not read the column is live"
        ],
    ),
    "another product's expression does not take the type": (
        (USER.replace("city: string", "city: json"), "{product: names, root: user, fields: [id, name]}"),
        [
            "product profile of the registry: `lower` cannot take json; keep in entity user what the "
            "product reads, or change the product in the same apply"
        ],
    ),
    "a product's topic is an entity's": (
        (STAR, "{product: stars, topic: t.user, root: star, fields: [id]}"),
        [
            "product stars: entity user of the registry already has the topic `t.user`; give product stars another "
            "`topic`"
        ],
    ),
    "an entity's topic is a product's": (
        (STAR.replace("t.star", "profile"), "{product: stars, root: star, fields: [id]}"),
        [
            "entity star: product profile of the registry already has the topic `profile`; give entity star another "
            "`topic`"
        ],
    ),
    "a product is renamed": (
        (USER, PROFILE.replace("product: profile", "product: users, topic: profile")),
        [
            "product users: product profile of the registry already has the topic `profile`; give product users "
            "another `topic`; if this is a new name for product profile, keep the old name: a registry entry has one "
            "name for ever"
        ],
    ),
    "an entity is renamed": (
        (USER.replace("user:", "users:"), PROFILE.replace("user", "users").replace("profile", "others")),
        [
            "entity users: entity user of the registry already has the topic `t.user`; give entity users another "
            "`topic`; if this is a new name for entity user, keep the old name: a registry entry has one name for ever"
        ],
    ),
}


@pytest.mark.parametrize("what", BREAKS)
def test_apply_refuses_what_breaks_the_registry_as_plan_does(
    verb: Verb, registry: Registry, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    assert verb("apply", USER, PROFILE) == 0
    before = registry.snapshot()
    definitions, lines = BREAKS[what]
    for name in ("plan", "apply"):
        capsys.readouterr()
        assert verb(name, *definitions) == 1
        assert capsys.readouterr().err.splitlines() == [f"statestore {name}: {lines[0]}", *lines[1:]]
    assert registry.snapshot() == before
    assert verb("plan", USER, PROFILE) == 0


def test_run_refuses_definitions_that_break_the_registry(
    verb: Verb, registry: Registry, postgres_url: str, schema: str
) -> None:
    assert verb("apply", USER, PROFILE) == 0
    before = registry.snapshot()
    settings = Settings(registry=postgres_url, registry_schema=schema, slots=5)
    with pytest.raises(PlanError, match=r"^entity user: column city is declared no more, but product profile"):
        prepare_plan(settings, load({"entities.yaml": USER.replace(", city: string", "")}))
    with pytest.raises(DefinitionError, match=r"^product profile of the registry: "):
        prepare_plan(settings, load({"entities.yaml": USER.replace("city: string", "city: json")}))
    with pytest.raises(TopicTaken, match=r"^entity star: "):
        prepare_plan(settings, load({"entities.yaml": STAR.replace("t.star", "profile")}))
    assert registry.snapshot() == before


@pytest.mark.parametrize(
    ("edit", "entry"),
    [
        ("UPDATE entities SET topic = 'elsewhere' WHERE name = 'user'", "entity user"),
        ("UPDATE products SET version = 2; DELETE FROM product_joins", "product stars"),
        ("UPDATE products SET version = 2, root = 'star' WHERE name = 'stars'", "product stars"),
    ],
)
def test_an_edit_by_hand_that_leaves_the_definition_behind_stops_every_job_until_the_next_apply(
    verb: Verb, registry: Registry, psql: Engine, edit: str, entry: str
) -> None:
    stars = "{product: stars, root: user, fields: [id], embed: {stars: {many: star, on: {who: name}}}}"
    assert verb("apply", f"{USER}\n{STAR}", stars) == 0
    plan = plan_of(registry.snapshot())
    with psql.begin() as connection:
        connection.execute(text("SELECT edit_by_hand('a test')"))
        connection.execute(text(edit))
    with pytest.raises(PlanError, match=f"^{entry} of the registry differs from its definition"):
        plan_of(registry.snapshot())
    assert verb("apply", f"{USER}\n{STAR}", stars) == 0
    assert plan_of(registry.snapshot()).products["stars"].nodes == plan.products["stars"].nodes


def test_columns_of_stored_rows_keep_their_meaning(
    verb: Verb, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb("apply", USER, PROFILE) == 0
    registry.applied(registry.take_lease("job", "here", 4, take_over=False, expires_after=30), 1)
    before = registry.snapshot()
    for name in ("plan", "apply"):
        assert verb(name, USER.replace("name: string", "name: int"), PROFILE) == 1
        assert "but a job has run with user, and nothing rewrites its stored rows" in capsys.readouterr().err
    assert registry.snapshot() == before
    assert verb("apply", USER.replace("name: string", "name: json, age: int"), PROFILE) == 0
    assert "documents over a changed entity stay as they are" in capsys.readouterr().err


def test_plan_and_apply_say_how_an_entity_comes_to_another_topic(
    verb: Verb, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb("apply", USER, PROFILE) == 0

    def read(topic: str, epoch: int) -> None:
        where = EpochBoundary(topic=topic, topic_id=topic, partition=0, from_offset=0, epoch=epoch, entity="user")
        registry.add_epochs([where])

    read("t.user", 1)
    move = (
        "entity user moves from topic t.user to t.people: once t.people has a new record, the job reads t.user to its end, and "
        "then t.people. Let the source end its writes to t.user before it writes to t.people. "
        "`statestore epoch t.people` gives up the rest of t.user"
    )
    other = USER.replace("t.user", "t.people")
    for name in ("plan", "apply"):
        capsys.readouterr()
        assert verb(name, other, PROFILE) == 0
        assert move in " ".join("".join(capsys.readouterr()).split())
    read("t.people", 2)
    assert verb("apply", other, PROFILE) == 0
    assert "moves from topic" not in "".join(capsys.readouterr())


def test_a_column_that_nothing_uses_is_dropped_and_its_type_is_remembered(
    verb: Verb, registry: Registry, capsys: pytest.CaptureFixture[str], schema: str
) -> None:
    assert verb("apply", USER, PROFILE) == 0
    registry.applied(registry.take_lease("job", "here", 4, take_over=False, expires_after=30), 1)
    without = USER.replace("name: string, ", "")
    assert verb("apply", without, PROFILE) == 0
    (user,) = registry.snapshot().entities
    assert (set(user.columns), user.dropped) == ({"id", "city"}, {"name": "string"})
    assert plan_of(registry.snapshot()).entities["user"].dropped == ("name",)
    assert main(["undo", "2", "--why", "x", "--registry-schema", schema]) == 1
    assert "a job has run with user, and its stored rows keep the change" in capsys.readouterr().err
    for name in ("plan", "apply"):
        assert verb(name, USER.replace("name: string", "name: int"), PROFILE) == 1
        assert "column name was string and is now int, but a job has run with user" in capsys.readouterr().err
    assert verb("apply", USER.replace("name: string", "name: json"), PROFILE) == 0
    assert registry.snapshot().entities[0].dropped == {}


def test_a_column_of_a_live_or_waiting_product_stays_declared(
    verb: Verb, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb("apply", USER, "{product: profile, root: user}") == 0
    registry.applied(registry.take_lease("job", "here", 4, take_over=False, expires_after=30), 1)
    without = USER.replace(", city: string", "")
    named = "{product: profile, root: user, fields: [id, name]}"
    for name in ("plan", "apply"):  # the live version reads whole rows until the next one is live
        assert verb(name, without, named) == 1
        assert "but product profile, version 1, reads whole rows" in capsys.readouterr().err
    assert verb("apply", USER, PROFILE, "{product: names, root: user, fields: [id, name]}") == 0
    registry.operate(Signature("me", "x"), operations.remove, "profile", tombstones=False)
    assert verb("apply", USER.replace("name: string, ", ""), "{product: cities, root: user, fields: [city]}") == 1
    assert "but product names, version 1, reads it: keep the column until" in capsys.readouterr().err
    assert verb("apply", without) == 0


def test_two_entities_may_change_their_topics_for_each_other(verb: Verb, registry: Registry) -> None:
    assert verb("apply", f"{USER}\n{STAR}", PROFILE) == 0
    turned = f"{USER.replace('t.user', 't.star')}\n{STAR.replace('t.star', 't.user')}"
    assert verb("apply", turned, PROFILE) == 0
    assert {one.name: one.topic for one in registry.snapshot().entities} == {"user": "t.star", "star": "t.user"}


USERS = "{product: users, root: user, topic: documents, fields: [id], key: {kind: \"'user'\", id: id}}"
STARS = "{product: stars, root: star, topic: documents, fields: [id], key: {kind: \"'star'\", id: id}}"
ORG_OF_USER = STARS.replace("'star'", "'user'")


@pytest.mark.rest
def test_two_teams_share_a_topic_by_other_constants_in_their_keys(
    verb: Verb, registry: Registry, psql: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb("apply", USER, USERS) == 0
    for product in (
        ORG_OF_USER,
        STARS.replace("{kind: \"'star'\", id: id}", "{kind: id}"),
        STARS.replace("'star'", "star"),
    ):
        assert verb("apply", f"{USER}\n{STAR}", product) == 1
    assert verb("apply", STAR, "{product: stars, root: star, topic: documents, fields: [id]}") == 1
    assert "product stars: product users of the registry already has the topic `documents`" in capsys.readouterr().err
    assert verb("apply", STAR, STARS) == 0
    assert {one.topic for one in registry.snapshot().products} == {"documents"}
    assert plan_of(registry.snapshot()).products.keys() == {"users", "stars"}
    definition = registry.snapshot().products[0].definition
    assert definition["key"] in ({"kind": "'star'", "id": "id"}, {"kind": "'user'", "id": "id"})
    assert verb("apply", STAR, STARS.replace("'star'", "'gift'")) == 1
    assert "`key` of its messages changes, and topic documents would keep" in capsys.readouterr().err
    assert verb("apply", STAR, STARS.replace("'star'", "'gift'").replace("documents", "gifts")) == 0
    edit = (
        "UPDATE products SET version = version + 1, topic = 'documents', definition = (:d)::json WHERE name = 'stars'"
    )
    for kind, refused in (("'user'", True), ("kind", True), ("'gift'", False)):
        changed = json.dumps(
            {"product": "stars", "topic": "documents", "root": "star", "key": {"kind": kind, "id": "id"}}
        )
        with psql.connect() as connection, pytest.raises(DBAPIError, match="two entries") if refused else nullcontext():
            connection.execute(text("SELECT edit_by_hand('a test')"))
            connection.execute(text(edit), {"d": changed})
            connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
