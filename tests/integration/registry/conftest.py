"""Small requirements for the registry: stars of users, and the repositories of stars."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from registry.model import KEY, EntityEntry, JoinPaths, JoinSpec, Need, ProductEntry, Requirements

STARS = JoinSpec(child="star", child_columns=("username",), parent="user", parent_columns=("username",))
OWNERS = JoinSpec(child="repo", child_columns=("owner",), parent="user", parent_columns=("username",))
REPOS = JoinSpec(child="repo", child_columns=("owner", "name"), parent="star", parent_columns=("owner", "repo"))


def entity(name: str, key: tuple[str, ...], /, **columns: str) -> EntityEntry:
    return EntityEntry(
        name=name,
        topic=f"t.{name}",
        key=key,
        shards=1,
        columns=columns,
        definition=MappingProxyType({"z": 1, "a": [2.5]}),
    )


@pytest.fixture
def required() -> Requirements:
    """A product of two joins below `user`."""
    of_user, by_name = Need(entity="star", columns=("username",)), Need(entity="user", columns=("username",))
    of_repo = Need(entity="star", columns=("repo", "owner"))
    return Requirements(
        entities=(
            entity("user", ("email",), email="string", username="string"),
            entity("star", ("id",), id="int", username="string", owner="string", repo="string"),
            entity("repo", ("owner", "name"), owner="string", name="string"),
        ),
        products=(
            ProductEntry(
                name="profile", topic="profile", root="user", definition={"fields": ["ü"]}, joins=(STARS, REPOS)
            ),
        ),
        paths=(
            JoinPaths(join=STARS, down=of_user, up=by_name),
            JoinPaths(join=REPOS, down=KEY, up=of_repo),
        ),
        groups=([of_user], [by_name], [of_repo]),
    )


@pytest.fixture
def more(required: Requirements) -> Requirements:
    """The product with one more join, which needs a new slot of `repo`."""
    up = Need(entity="user", columns=("username",))
    path = JoinPaths(join=OWNERS, down=Need(entity="repo", columns=("owner",)), up=up)
    (product,) = required.products
    return replace(
        required,
        products=(replace(product, joins=(*product.joins, OWNERS)),),
        paths=(*required.paths, path),
    )


@pytest.fixture
def wider(required: Requirements) -> Requirements:
    """The same with one more index on `repo`."""
    return replace(required, groups=(*required.groups, [Need(entity="repo", columns=("owner",))]))
