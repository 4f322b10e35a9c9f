"""Short histories written by hand. Each makes one situation in which a protection is needed, under conditions that a test sets.

A script is a text of changes, `entity key column=value ...`, separated by semicolons. The other columns keep their values. `-` is
null, `gone` deletes the row, and `star * emptied` empties a table. Every change gets a stamp, except a change of a column that no
product reads.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.simulator.history import Event
from tests.simulator.shapes import STAMP, Row, Shape

ROWS: Mapping[str, Row] = {
    "user": {"email": "", "id": 0, "username": None, "bio": "0"},
    "star": {"id": 0, "username": None, "repo_owner": "o", "repo_name": "r", "at": 0, "note": "0", "good": True},
    "repo": {"owner": "o", "name": "", "stars": 0, "about": "0"},
    "label": {"id": 0, "repo_owner": "o", "repo_name": "r", "text": "0"},
}
KEY_COLUMN = {"user": "email", "star": "id", "repo": "name", "label": "id"}

SCRIPTS = {
    "a star appears": "user x username=a; star 0 username=a; user x",
    "three stars appear": "user x username=a; star 0 username=a; star 1 username=a; star 2 username=a; user x",
    "a star changes": "user x username=a; star 0 username=a; star 0; user x",
    "a star moves": "user x username=a; user y username=b; star 0 username=a; star 0 username=b",
    "a star moves to another user": "user x username=a; user y username=c; star 2 username=a; star 2 username=c",
    "a star comes back": (
        "user x username=a; user y username=b; star 0 username=a; star 0 username=b; star 0 username=a"
    ),
    "a star moves twice": (
        "user x username=a; user y username=b; user z username=c; star 0 username=a; star 0 username=b; star 0 username=c"
    ),
    "a star changes, then its note": "user x username=a; star 0 username=a; star 0; star 0 note=1",
    "a star leaves its user": "user x username=a; star 0 username=a; star 0 username=-; user x",
    "a star is deleted": "user x username=a; star 0 username=a; star 0 gone",
    "a star is deleted, then its user changes": "user x username=a; star 0 username=a; star 0 gone; user x",
    "a star moves while its topic grows": (
        "user x username=a; user y username=b; star 2 username=a; star 2 username=c; star 2 username=b"
    ),
    "a star moves, and its topic loses the record": (
        "user x username=a; user y username=c; star 2 username=a; star 2 username=c; user y"
    ),
    "a star is deleted while its slot moves": (
        "user x username=a; star 0 username=a; star 0 gone; user x; user x; user x; user x; user x"
    ),
    "a user is renamed": "user x username=a; user x username=b; star 0 username=b; star 1 username=a",
    "a user takes its name back": (
        "user x username=a; star 0 username=a; user x username=b; user x username=a; star 0; star 0; star 1 username=a"
    ),
    "a user has another name for a moment": (
        "user x username=a; star 0 username=a; user x username=b; user x username=a; star 0"
    ),
    "a star changes after its user": "user x username=a; star 0 username=a; user x; user x; user x; star 0",
    "a label leaves its repo": (
        "user x username=a; star 0 username=a; label 0; label 1; label 2; label 0 repo_name=s; label 1"
    ),
    "a label arrives while its star is hidden": "user x username=a; star 0 username=a; label 0",
    "a star comes back after a truncate": (
        "user x username=a; user y username=b; star 0 username=c; star 1 username=a; star * emptied; star 1 username=b"
    ),
    "a table is emptied twice": "user x username=a; star 0 username=c; star 1 username=a; star * emptied; star * emptied",
    "a fill wakes after a newer change": (
        "user x username=a; user y username=b; star 0 username=a; star 0 username=b; user y"
    ),
    "a publication wakes after a newer document": "user x username=a; star 0 username=a; star 0; user x",
    "a product goes during its first batch": "user x username=a; star 0 username=a",
    "a step wakes during a move": "user x username=a; star 0 username=a; star 1 username=a; user x",
    "a slot goes while a change is open": "user x username=a; user x username=b",
    "a user goes while the product has another topic": "user x username=a; user x gone",
    "a product comes after another one that went": "user x username=a; star 0 username=a",
    "a message of a second product is lost": "user x username=a; star 0 username=a",
    "a product gets the topic of one that went": (
        "user x username=a; star 0 username=a; star 1 username=a; star 2 username=a; user x"
    ),
    "two products change, and then one of them": (
        "user x username=a; star 0 username=a note=a; star 0 username=-; star 0; user x"
    ),
    "a star of five users": (
        "user v username=a; user w username=a; user x username=a; user y username=a; user z username=a; star 0 username=a"
    ),
    "a star of five users changes three times": (
        "user v username=a; user w username=a; user x username=a; user y username=a; user z username=a; "
        "star 0 username=a; star 0; star 0; star 0"
    ),
    "two products of two users": "user x username=a; star 0 username=a; user y username=b; star 1 username=b",
    "a star changes that two products show": "user x username=a; star 0 username=a; star 0",
    "four stars of one time": (
        "user x username=a; star 10 username=a; star 11 username=a; star 12 username=a; star 7 username=a; user x"
    ),
    "the newest stars do not count": (
        "user x username=a; star 1 username=a at=1; star 2 username=a at=2; star 3 username=a at=3 good=false; "
        "star 4 username=a at=4 good=false; star 5 username=a at=5 good=false"
    ),
    "the oldest star becomes the newest": (
        "user x username=a; star 1 username=a at=1; star 2 username=a at=2; star 3 username=a at=3; "
        "star 4 username=a at=4; star 1 at=9"
    ),
    "a publication reads by a freed slot": "user x username=a; star 0 username=a; user x; star 1 username=a",
}
"""Scripts by name."""


def scripted_events(shape: Shape, name: str) -> list[Event]:
    """The changes of the script of this name."""
    rows: dict[tuple[str, str], Row] = {}
    return list(_events(shape, SCRIPTS[name], rows))


def _events(shape: Shape, text: str, rows: dict[tuple[str, str], Row]) -> Iterator[Event]:
    for n, change in enumerate(text.split(";"), start=1):
        entity, name, *words = change.split()
        if words == ["emptied"]:
            rows = {place: row for place, row in rows.items() if place[0] != entity}
            yield Event(entity=entity, key={}, row=None, truncate=True)
            continue
        first = {KEY_COLUMN[entity]: int(name) if entity in ("star", "label") else name}
        row = {**ROWS[entity], **rows.get((entity, name), {}), **first}
        key = shape.key(entity, row)
        if words == ["gone"]:
            del rows[entity, name]
            yield Event(entity=entity, key=key, row=None)
            continue
        columns = shape.definitions.entities[entity].columns
        changed = {name: _value(text, columns[name].name) for name, text in (word.split("=") for word in words)}
        unread = changed and changed.keys() <= {shape.unused_columns.get(entity)}
        stamp: dict[str, Any] = {} if unread else {STAMP: n}
        row = rows[entity, name] = {**row, **changed, **stamp}
        declared = shape.definitions.entities[entity].columns
        yield Event(entity=entity, key=key, row={c: v for c, v in row.items() if c in declared})


def _value(text: str, kind: str) -> Any:
    if text == "-":
        return None
    return int(text) if kind == "int" else text == "true" if kind == "bool" else text
