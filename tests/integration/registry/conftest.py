"""Small requirements for the registry: stars of users, and the repositories of stars."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from registry.model import KEY, EntityEntry, Index, JoinAccess, JoinSpec, ProductEntry, Requirements

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
    of_user, by_name = Index(entity="star", columns=("username",)), Index(entity="user", columns=("username",))
    of_repo = Index(entity="star", columns=("repo", "owner"))
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
            JoinAccess(join=STARS, down=of_user, up=by_name),
            JoinAccess(join=REPOS, down=KEY, up=of_repo),
        ),
        groups=([of_user], [by_name], [of_repo]),
    )


@pytest.fixture
def more(required: Requirements) -> Requirements:
    """The product with one more join, which needs a new slot of `repo`."""
    up = Index(entity="user", columns=("username",))
    path = JoinAccess(join=OWNERS, down=Index(entity="repo", columns=("owner",)), up=up)
    (product,) = required.products
    return replace(
        required,
        products=(replace(product, joins=(*product.joins, OWNERS)),),
        paths=(*required.paths, path),
    )


@pytest.fixture
def wider(required: Requirements) -> Requirements:
    """The same with one more index on `repo`."""
    return replace(required, groups=(*required.groups, [Index(entity="repo", columns=("owner",))]))
