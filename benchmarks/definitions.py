"""Generate any number of products over the demo's five tables; the first one is the demo's own.

    python -m benchmarks.definitions --products 100 DIRECTORY

Promises: valid and different definitions (root, fields, filters, order, limits, aggregates), and the same definition for the same
number. All joins are joins of `user_profile`, in either direction, so the products need no slot that `user_profile` does not
need. Each product reads `pull_request.title`, and `user_profile` alone reads `pull_request.created_at`.
"""

import argparse
import json
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.steps import EXAMPLE
from processor.language.definitions.load import read_directory

Tree = dict[str, Any]
PULL_REQUEST = ("repo", "repo_owner", "index", "status")
PULL_REQUEST_CONDITIONS = ("status <> 'draft'", "status in ('open', 'merged')", "index > 1000", "title like 'Fix%'")
STAR_CONDITIONS = ("repo_owner <> 'elsewhere'", "repo_name like 'repo1%'", "created_at > '2015-01-01T00:10:00Z'")


def generate_definitions(products: int) -> dict[str, str]:
    """The files of a directory of definitions with this many products: name -> text. The text is JSON, which is YAML too."""
    files = dict(read_directory(EXAMPLE))
    for number in range(1, products):
        files[f"product_{number:04}.yaml"] = json.dumps(_product(number), indent=1)
    return files


def _product(number: int) -> Tree:
    chance = Random(number)
    name = f"product_{number:04}"
    match chance.choice(("user", "user", "pull_request", "payment_info")):
        case "user":
            return {"product": name, "root": "user", "fields": _some(chance, "email", "id"), "embed": _of_user(chance)}
        case "pull_request":
            author: Tree = {"one": "user", "on": {"username": "author"}, "fields": _some(chance, "email", "username")}
            author |= {"embed": others} if (others := _other_embeds(chance)) else {}
            fields = ["title", *_some(chance, *PULL_REQUEST)]
            return {"product": name, "root": "pull_request", "fields": fields, "embed": {"author": author}}
        case _:
            user = {"one": "user", "on": {"id": "user_id"}, "fields": ["username"], "embed": _of_user(chance)}
            return {"product": name, "root": "payment_info", "fields": ["id", "verified"], "embed": {"user": user}}


def _of_user(chance: Random) -> Tree:
    return {"pull_requests": _pull_requests(chance), **_other_embeds(chance)}


def _other_embeds(chance: Random) -> Tree:
    embeds: Tree = {}
    if chance.random() < 0.5:
        embeds["stars"] = _stars(chance)
    if chance.random() < 0.5:
        embeds["payment_verified"] = {"one": "payment_info", "on": {"user_id": "id"}, "value": "verified"}
    return embeds


def _pull_requests(chance: Random) -> Tree:
    join: Tree = {"many": "pull_request", "on": {"author": "username"}}
    if chance.random() < 0.5:
        join["where"] = chance.choice(PULL_REQUEST_CONDITIONS)
    if chance.random() < 0.3:
        fields = {"number": "count(*)", "first": "min(title)", "newest": "max(index)"}
        return {**join, "fields": dict(list(fields.items())[: chance.randint(2, 3)])}
    return {
        **join,
        **_shown(chance, "title", *_some(chance, *PULL_REQUEST)),
        **_cut(chance, "-index", "status", "title"),
    }


def _stars(chance: Random) -> Tree:
    join: Tree = {"many": "star", "on": {"username": "username"}}
    if chance.random() < 0.5:
        join["where"] = chance.choice(STAR_CONDITIONS)
    if chance.random() < 0.3:
        return {**join, "value": chance.choice(("count(*)", "max(created_at)"))}
    join["join"] = {"repo": {"one": "repo", "on": {"owner": "repo_owner", "name": "repo_name"}}}
    column = chance.choice(("description", "star_count", "fork_count"))
    fields = {"repo": "repo_owner || '/' || repo_name", column: f"repo.{column}"}
    return {**join, "fields": fields, **_cut(chance, "-created_at", "repo_name", f"repo.{column}")}


def _shown(chance: Random, first: str, *others: str) -> Tree:
    return {"value": first} if chance.random() < 0.2 else {"fields": [first, *others]}


def _cut(chance: Random, *orders: str) -> Tree:
    cut: Tree = {"order_by": chance.sample(orders, chance.randint(1, len(orders)))}
    if chance.random() < 0.5:
        cut |= {"limit": chance.choice((3, 10, 100)), "total": chance.random() < 0.3}
    return cut


def _some(chance: Random, *columns: str) -> list[str]:
    return chance.sample(columns, chance.randint(1, len(columns)))


def main() -> None:
    """Writes the files into a directory, for `statestore plan` and `apply`."""
    options = argparse.ArgumentParser(description="Writes generated definitions.")
    options.add_argument("--products", type=int, default=100)
    options.add_argument("directory", type=Path)
    given = options.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    for name, text in generate_definitions(given.products).items():
        (given.directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
