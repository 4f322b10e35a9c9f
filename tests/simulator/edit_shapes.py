"""The contents that operators give to the products of the shape `edits`, over the tables of `stars`.

They differ in all that an edit can change: joins by slots, by keys and by edges, fields that no other content uses, a `where`, an
order. No two contents of one product have different roots.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from types import MappingProxyType
from typing import Any

from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from registry.model import ProductEntry
from tests.integration.product.every_word import described_words
from tests.integration.product.products import ENTITIES, Author, compute, described_group, every_computed_column
from tests.simulator.shape_definitions import STARS

STARS_OF_USER = {"many": "star", "on": {"username": "username"}, "fields": ["id", "n"]}
STARS_OF_REPO = {"many": "star", "on": {"repo_owner": "owner", "repo_name": "name"}, "fields": ["id", "n"]}
REPO = {"one": "repo", "on": {"owner": "repo_owner", "name": "repo_name"}, "fields": ["owner", "name", "about", "n"]}
LABELS = {
    "many": "label",
    "on": {"repo_owner": "repo_owner", "repo_name": "repo_name"},
    "fields": ["id", "text", "n"],
}
USER = {"product": "profile", "root": "user", "fields": ["email", "username", "n"]}
OF_REPO = {"product": "fans", "root": "repo", "fields": ["owner", "name", "n"]}
OF_LABEL = {"product": "labels", "root": "label", "fields": ["id", "repo_owner", "repo_name", "n"]}

CONTENTS: dict[str, list[dict[str, Any]]] = {
    "profile": [
        {**USER, "embed": {"stars": STARS_OF_USER}},
        {**USER, "fields": ["email", "username", "bio", "n"], "embed": {"stars": STARS_OF_USER}},
        {**USER, "embed": {"stars": {**STARS_OF_USER, "fields": ["id", "note", "n"], "embed": {"repo": REPO}}}},
        {**USER, "embed": {"stars": {**STARS_OF_USER, "embed": {"labels": LABELS}}}},
        {**USER, "embed": {"stars": {**STARS_OF_USER, "strong": True}}},
        {**USER, "where": "bio = '1'", "embed": {"stars": {**STARS_OF_USER, "order_by": ["-at"]}}},
        {**USER, "embed": {"noted": {"many": "star", "on": {"note": "username"}, "fields": ["id", "n"]}}},
    ],
    "fans": [
        {**OF_REPO, "embed": {"stars": STARS_OF_REPO}},
        {
            **OF_REPO,
            "embed": {
                "stars": {
                    **STARS_OF_REPO,
                    "embed": {
                        "user": {"one": "user", "on": {"username": "username"}, "fields": ["email", "n"]},
                    },
                }
            },
        },
        {**OF_REPO, "fields": ["owner", "name", "stars", "n"], "embed": {"by": {**STARS_OF_REPO, "strong": True}}},
    ],
    "labels": [
        {
            **OF_LABEL,
            "embed": {
                "stars": {
                    "many": "star",
                    "on": {"repo_owner": "repo_owner", "repo_name": "repo_name"},
                    "fields": ["id", "n"],
                }
            },
        },
        {
            **OF_LABEL,
            "embed": {"texts": {"many": "label", "on": {"text": "text"}, "fields": ["id", "n"]}},
            "fields": ["id", "repo_owner", "repo_name", "text", "n"],
        },
    ],
}
"""Product -> its contents."""


def texts(
    contents: Mapping[str, int],
    topics: Mapping[str, str] = MappingProxyType({}),
    catalogue: Mapping[str, Sequence[Mapping[str, Any]]] = CONTENTS,
) -> dict[str, str]:
    """The definitions of these products, each with the content of this number. `topics`: those that are not the product's
    name; `catalogue`: the contents of each product."""
    products = {
        name: {**catalogue[name][number], "product": name, "topic": topics.get(name, name)}
        for name, number in contents.items()
    }
    return {f"{name}.json": json.dumps(product) for name, product in products.items()}


def definitions_of(products: Iterable[ProductEntry], entities: str = STARS["entities.yaml"]) -> Definitions:
    """The definitions of these entries of a registry. `entities`: the text of the entities."""
    return _loaded(tuple((f"{one.name}.json", json.dumps(one.definition)) for one in products), entities)


@lru_cache(maxsize=1_000)
def _loaded(products: tuple[tuple[str, str], ...], entities: str) -> Definitions:
    return load({"entities.yaml": entities, **dict(products)})


def drawn_contents(name: str) -> dict[str, list[dict[str, Any]]]:
    """Random products by their numbers, over the tables of random products: each with some contents that have its root, and with
    every feature that a product can have; by the name `drawn computed N` with expressions in joins, by `drawn grouped N` some of
    groups, by `drawn routed N` with headers and `partition_by`, by `drawn every N` with all words of the language."""
    if "counted" in name:
        return _counted_contents(Random(name))
    if "grouped" in name:
        return _grouped_contents(Random(name))
    if "every" in name:
        return _every_contents(name)
    rng = Random(name)
    entities = json.loads(drawn_entities(name))
    found = {}
    for number in range(rng.choice((1, 2, 3))):
        first = Author(rng).product()
        more = [Author(rng).product() for _ in range(12)]
        alike = [first, *(one for one in more if one["root"] == first["root"])][:4]
        for one in alike if "computed" in name else ():
            compute(rng, one, one["root"], entities, 1)
        if "routed" in name:
            alike = [one | _drawn_route(rng, ENTITIES[one["root"]]["columns"]) for one in alike]
        found[f"p{number}"] = found[f"q{number}"] = alike
    return found


_MEASURES: Mapping[str, str] = {
    "rows": "count(stars)",
    "sum": "sum(stars.at)",
    "mean": "avg(stars.at)",
    "noted": "count(stars) filter (where stars.note = '1')",
    "any": "bool_or(stars.at > 1)",
    "all": "bool_and(stars.at > 1)",
}


def _counted_contents(rng: Random) -> dict[str, list[dict[str, Any]]]:
    """Aggregates of the stars of users and of repositories, by totals and by rows, next to lists."""
    found = {}
    for number in range(rng.choice((1, 2, 3))):
        root = rng.choice(("user", "user", "repo"))
        found[f"p{number}"] = found[f"q{number}"] = [_counted_content(rng, root) for _ in range(4)]
    return found


def _counted_content(rng: Random, root: str) -> dict[str, Any]:
    of_user = root == "user"
    own = {"email": "email", "username": "username"} if of_user else {"of": "owner", "name": "name"}
    rows = STARS_OF_USER if of_user else STARS_OF_REPO
    join: dict[str, Any] = {"many": "star", "on": rows["on"]}
    if rng.random() < 0.4:
        join["where"] = rng.choice(("note = '1'", "at > 0"))
    if rng.random() < 0.75:
        join["counted"] = True
    chosen = rng.sample(sorted(_MEASURES), rng.randint(1, 3))
    fields = {**own, **{name: _MEASURES[name] for name in chosen}}
    listed = {"embed": {"list": rows}} if rng.random() < 0.3 else {}
    return {"product": "p", "root": root, "fields": fields, "join": {"stars": join}, **listed}


def _drawn_route(rng: Random, columns: Mapping[str, str]) -> dict[str, Any]:
    """The words of a product over its messages."""
    named = [name for name, type_ in columns.items() if type_ in ("int", "string", "bool", "date")]
    words: dict[str, Any] = {"headers": {f"h-{name}": name for name in rng.sample(named, 1)}}
    return words | ({"partition_by": rng.sample(named, 1)} if rng.random() < 0.7 else {})


def _grouped_contents(rng: Random) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for number in range(rng.choice((1, 2, 3))):
        first = described_group(rng)
        more = [described_group(rng) for _ in range(30)]
        alike = [first, *(one for one in more if _same_groups(one["root"], first["root"]))][:4]
        plain = Author(rng).product()
        found[f"p{number}"] = found[f"q{number}"] = alike if rng.random() < 0.8 else [plain]
    return found


@lru_cache(maxsize=4)
def _every_contents(name: str) -> dict[str, list[dict[str, Any]]]:
    rng, found = Random(name), {}
    for number in range(rng.choice((1, 2))):
        first = described_words(rng)
        found[f"p{number}"] = found[f"q{number}"] = [first, *(described_words(rng, first) for _ in range(2))]
    return found


def _same_groups(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one["group"], [*one["by"]]) == (other["group"], [*other["by"]])


def drawn_entities(name: str) -> str:
    """The text of the entities of `drawn_contents`."""
    if "counted" in name:
        return STARS["entities.yaml"]
    return json.dumps(every_computed_column() if "computed" in name else ENTITIES)


def all_texts(catalogue: Mapping[str, Sequence[Mapping[str, Any]]] = CONTENTS) -> dict[str, str]:
    """Every content as a product of its own."""
    return {
        f"{name}{n}.json": json.dumps({**content, "product": f"{name}{n}"})
        for name, contents in catalogue.items()
        for n, content in enumerate(contents)
    }
