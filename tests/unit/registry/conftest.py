"""The example product `user_profile`: its requirements, and the registry after an apply of them."""

import pytest

from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.model import (
    KEY,
    EntityEntry,
    Index,
    JoinAccess,
    JoinSpec,
    ProductEntry,
    RequiredPath,
    Requirements,
    Snapshot,
)

EMPTY = Snapshot(version=0, slots=20, entities=(), products=(), assignments=(), joins=())


def entity(name: str, key: list[str], /, **columns: str) -> EntityEntry:
    return EntityEntry(
        name=name, topic=name, key=tuple(key), shards=1, columns=columns, definition={"key": key, "columns": columns}
    )


def join(child: str, child_columns: list[str], parent: str, parent_columns: list[str]) -> JoinSpec:
    return JoinSpec(
        child=child, child_columns=tuple(child_columns), parent=parent, parent_columns=tuple(parent_columns)
    )


def need(entity: str, *columns: str) -> Index:
    return Index(entity=entity, columns=columns)


@pytest.fixture
def empty() -> Snapshot:
    """A registry of 20 slots without entities."""
    return EMPTY


@pytest.fixture
def github() -> Requirements:
    """`user_profile` and its entities."""
    stars = join("star", ["username"], "user", ["username"])
    repos = join("repo", ["owner", "name"], "star", ["repo_owner", "repo_name"])
    pulls = join("pull_request", ["author"], "user", ["username"])
    payments = join("payment_info", ["user_id"], "user", ["id"])
    by_name, by_id, of_repo = need("user", "username"), need("user", "id"), need("star", "repo_owner", "repo_name")
    of_user = [need("star", "username"), need("pull_request", "author")]
    paths: tuple[JoinAccess[RequiredPath], ...] = (
        JoinAccess(join=stars, down=of_user[0], up=by_name),
        JoinAccess(join=repos, down=KEY, up=of_repo),
        JoinAccess(join=pulls, down=of_user[1], up=by_name),
        JoinAccess(join=payments, down=need("payment_info", "user_id"), up=by_id),
    )
    product = ProductEntry(
        name="user_profile",
        topic="user_profile",
        root="user",
        definition={"root": "user", "fields": ["email", "username"]},
        joins=tuple(path.join for path in paths),
    )
    return Requirements(
        entities=(
            entity("user", ["email"], id="int", email="string", username="string"),
            entity(
                "star",
                ["username", "repo_name", "repo_owner"],
                username="string",
                repo_name="string",
                repo_owner="string",
            ),
            entity(
                "pull_request",
                ["repo", "repo_owner", "index"],
                repo="string",
                repo_owner="string",
                index="int",
                author="string",
            ),
            entity("payment_info", ["id"], id="int", user_id="int", verified="bool"),
            entity("repo", ["owner", "name"], owner="string", name="string"),
        ),
        products=(product,),
        paths=paths,
        groups=(of_user, [by_name], [of_repo], [need("payment_info", "user_id")], [by_id]),
    )


@pytest.fixture
def applied(github: Requirements) -> Snapshot:
    """The registry after an apply of the example, in the order in which Postgres returns it."""
    return edited(EMPTY, apply(EMPTY, github, has_run=()))
