"""Products with a given number of joins, and the changes of their tables: the demo's five tables, and up to five tables of notes.

Promises: each product has exactly as many joins; products differ in root, fields, conditions and limits; the same answer for the
same numbers. A product with at most four joins reads the demo's tables only.
"""

import json
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from benchmarks.inputs.history import RECORD_INTERVAL, generate_history
from benchmarks.steps import EXAMPLE, number_records
from processor.language.definitions.load import ENTITIES, read_directory
from processor.tools.demo.github import RecordedLine, recorded_line
from processor.values.record import Record

DEMO_JOINS = 4
"""The joins of a user over the demo's tables. Each further join has a table of notes of its own."""
NOTE_SHARE = 0.1
"""Changes of each table of notes for one change of the demo's tables."""
NOTE = "{key: [id], columns: {id: int, username: string, body: string, written_at: timestamp(ms)}}"
PULL_REQUEST_FIELDS = ("repo", "index", "status", "created_at")
Tree = dict[str, Any]


def joined_definitions(products: int, joins: int) -> dict[str, str]:
    """The files of a directory of definitions with this many products of this many joins, 3 to 9: name -> text."""
    notes = [f"note_{number}: {NOTE}\n" for number in range(1, joins - DEMO_JOINS + 1)]
    entities = read_directory(EXAMPLE)[ENTITIES] + "".join(notes)
    made = {f"profile_{number}.yaml": json.dumps(_product(number, joins)) for number in range(products)}
    return {ENTITIES: entities, **made}


def joined_records(events: int, users: int, joins: int) -> list[Record]:
    """This many changes of the tables that products of this many joins read."""
    return number_records(islice(_lines(events, users, max(joins - DEMO_JOINS, 0)), events))


def _product(number: int, joins: int) -> Tree:
    chance = Random(number)
    heading = {"product": f"profile_{number}"}
    user: Tree = {"one": "user", "fields": _some(chance, "email", "username", "registered_at")}
    match number % 3:
        case 1:
            author = {**user, "on": {"username": "author"}, "embed": _of_user(chance, joins - 1)}
            fields = ["title", *_some(chance, *PULL_REQUEST_FIELDS)]
            return {**heading, "root": "pull_request", "fields": fields, "embed": {"author": author}}
        case 2:
            payer = {**user, "on": {"id": "user_id"}, "embed": _of_user(chance, joins - 1)}
            return {**heading, "root": "payment_info", "fields": ["id", "verified"], "embed": {"payer": payer}}
    return {**heading, "root": "user", "fields": user["fields"], "embed": _of_user(chance, joins)}


def _of_user(chance: Random, joins: int) -> Tree:
    """The first `joins` joins of a user."""
    pulls = {"many": "pull_request", "on": {"author": "username"}, "order_by": ["-created_at"]}
    stars: Tree = {"many": "star", "on": {"username": "username"}, "order_by": ["-created_at"]}
    embeds: Tree = {
        "pull_requests": {**pulls, "fields": ["title", *_some(chance, *PULL_REQUEST_FIELDS)], "limit": 100},
        "stars": {**stars, "fields": ["repo_owner", "repo_name"], "limit": chance.choice((10, 100))},
    }
    if joins >= 3:
        embeds["verified"] = {"one": "payment_info", "on": {"user_id": "id"}, "value": "verified"}
    if joins >= DEMO_JOINS:
        stars |= {"join": {"repo": {"one": "repo", "on": {"owner": "repo_owner", "name": "repo_name"}}}}
        fields = {"repo": "repo_name", "shown": chance.choice(("repo.description", "repo.fork_count"))}
        embeds["stars"] = {**stars, "fields": fields, "limit": chance.choice((10, 100))}
    for note in range(1, joins - DEMO_JOINS + 1):
        notes = {"many": f"note_{note}", "on": {"username": "username"}, "order_by": ["-written_at"], "limit": 20}
        embeds[f"notes_{note}"] = {**notes, "fields": ["id", *_some(chance, "body", "written_at")]}
    return embeds


def _some(chance: Random, *columns: str) -> list[str]:
    return chance.sample(columns, chance.randint(1, len(columns)))


def _lines(events: int, users: int, notes: int) -> Iterator[RecordedLine]:
    """The demo's history, with changes of tables of notes between its lines."""
    chance, names = Random(1), list[str]()
    tables: list[list[Tree]] = [[] for _ in range(notes)]
    for line in generate_history(1, events, users):
        yield line
        if line["topic"] == "user" and line["value"]:
            names.append(line["value"]["username"])
        for number, rows in enumerate(tables, start=1):
            if names and chance.random() < NOTE_SHARE:
                yield _note(chance, f"note_{number}", rows, names, line["timestamp"])


def _note(chance: Random, topic: str, rows: list[Tree], names: list[str], time: int) -> RecordedLine:
    """One change: six in ten add a note, three change its text, and one gives it to another user or deletes it."""
    kind, user = chance.random(), names[int(len(names) * chance.random() ** 2)]
    if not rows or kind < 0.6:
        row = {"id": time // RECORD_INTERVAL, "username": user, "body": f"Said at {time}", "written_at": time}
        rows.append(row)
        return recorded_line(topic, {"id": row["id"]}, row, time)
    place = chance.randrange(len(rows))
    if kind > 0.95:
        return recorded_line(topic, {"id": rows.pop(place)["id"]}, None, time)
    rows[place] = {**rows[place], **({"body": f"Changed at {time}"} if kind < 0.9 else {"username": user})}
    return recorded_line(topic, {"id": rows[place]["id"]}, rows[place], time)
