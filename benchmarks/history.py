"""A generated history of the demo's five tables: as many records as asked for, in the demo's mix of kinds.

    python benchmarks/history.py --events 40000 --users 3000 > history.jsonl

Promises: streaming (it keeps the tables, not the records), the same lines for the same seed, plain rows, a key in one
partition, times that rise. All users are created by the middle; a few rows are much more popular than the others.
Does not: hold broken records or controls; `processor.demo.github` has those.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import accumulate, islice
from typing import Any

from processor.demo.recorded import PAYMENT_INFO, PULL_REQUEST, REPO, STAR, TABLES, USER, Line, Row, Table, line

START = 1_420_070_400_000
STEP = 250
"""Milliseconds: the time of the first record, and from one record to the next."""


def generate(seed: int, events: int = 40_000, users: int = 3_000) -> Iterator[Line]:
    """Exactly `events` recorded lines in which up to `users` users are created; the lines depend on all three."""
    return islice(_lines(_Source(random.Random(seed)), max(events // 2 // max(users, 1), 1), users), events)


def _lines(source: "_Source", every: int, users: int) -> Iterator[Line]:
    """A new user every `every` records until there were `users`; between them kinds of `MIX`, by their shares."""
    kinds, shares = list(MIX), list(accumulate(MIX.values()))
    created = 0
    while True:
        if created < users and source.count >= created * every:
            created += 1
            yield user_created(source)
        made = source.chance.choices(kinds, cum_weights=shares)[0](source)
        # None: there is no row yet that this could happen to.
        if made is not None:
            yield made


class _Rows:
    """The rows of one table; any of them in constant time."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows: list[Row] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def put(self, row: Row) -> None:
        place = self._places.setdefault(self._table.key_of(row), len(self._rows))
        self._rows[place : place + 1] = [row]

    def delete(self, row: Row) -> None:
        place, last = self._places.pop(self._table.key_of(row)), self._rows.pop()
        if place < len(self._rows):
            self._rows[place] = last
            self._places[self._table.key_of(last)] = place

    def at(self, share: float) -> Row | None:
        """The row at `share` (0 up to 1) of the table, or None if it is empty."""
        return self._rows[int(len(self._rows) * share)] if self._rows else None


class _Source:
    """The tables, and the line that a change of one leaves; `count`: the lines so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self._tables = {table.name: _Rows(table) for table in TABLES}

    @property
    def now(self) -> str:
        return datetime.fromtimestamp((START + self.count * STEP) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def any(self, table: Table, favour: int = 1) -> Row | None:
        """A random row; `favour` above 1 prefers the older ones: 3 gives the oldest eighth half of the picks."""
        return self._tables[table.name].at(self.chance.random() ** favour)

    def put(self, table: Table, row: Row) -> Line:
        self._tables[table.name].put(row)
        return self._line(table, row, row)

    def change(self, table: Table, row: Row | None, **columns: object) -> Line | None:
        return None if row is None else self.put(table, {**row, **columns})

    def delete(self, table: Table, row: Row | None) -> Line | None:
        if row is None:
            return None
        self._tables[table.name].delete(row)
        return self._line(table, row, None)

    def _line(self, table: Table, keyed: Row, value: Row | None) -> Line:
        self.count += 1
        return line(table.name, {column: keyed[column] for column in table.key}, value, START + self.count * STEP)


def user_created(source: _Source) -> Line:
    name = f"user{source.count}"
    row = {"id": source.count, "email": f"{name}@users.noreply.example", "username": name}
    return source.put(USER, {**row, "registered_at": source.now})


def user_renamed(source: _Source) -> Line | None:
    """The join key of stars and pull requests changes; they stay behind."""
    return source.change(USER, source.any(USER), username=f"renamed{source.count}")


def user_saved(source: _Source) -> Line | None:
    return source.change(USER, source.any(USER))


def user_deleted(source: _Source) -> Line | None:
    return source.delete(USER, source.any(USER))


def repo_created(source: _Source) -> Line | None:
    owner = source.any(USER)
    if owner is None:
        return None
    row = {"owner": owner["username"], "name": f"repo{source.count}", "description": f"Made at {source.now}, “as is”"}
    counts = {"star_count": 0, "fork_count": 0}
    return source.put(REPO, {**row, **counts, "created_at": source.now, "updated_at": source.now})


def repo_described(source: _Source) -> Line | None:
    return source.change(REPO, source.any(REPO, favour=3), description=f"Said at {source.now}", updated_at=source.now)


def repo_counted(source: _Source) -> Line | None:
    """A change that matters to no document."""
    repo = source.any(REPO, favour=3)
    return repo and source.change(REPO, repo, star_count=repo["star_count"] + 1)


def repo_deleted(source: _Source) -> Line | None:
    return source.delete(REPO, source.any(REPO))


def star_given(source: _Source) -> Line | None:
    """Two in three of a repository without a row, as in the demo; of which a few get most."""
    user, repo = source.any(USER, favour=2), source.any(REPO, favour=3)
    if user is None or repo is None:
        return None
    if source.chance.random() < 2 / 3:
        repo = {"owner": "elsewhere", "name": f"repo{int(5_000 * source.chance.random() ** 3)}"}
    row = {"username": user["username"], "repo_name": repo["name"], "repo_owner": repo["owner"]}
    return source.put(STAR, {**row, "created_at": source.now})


def star_taken_back(source: _Source) -> Line | None:
    return source.delete(STAR, source.any(STAR))


def pull_request_opened(source: _Source) -> Line | None:
    user, repo = source.any(USER, favour=2), source.any(REPO)
    if user is None or repo is None:
        return None
    key = {"repo": repo["name"], "repo_owner": repo["owner"], "index": source.count}
    row = {
        "author": user["username"],
        "title": f"Fix “{repo['name']}”",
        "status": source.chance.choice(["open", "draft"]),
    }
    return source.put(PULL_REQUEST, {**key, **row, "created_at": source.now})


def pull_request_moved(source: _Source) -> Line | None:
    status = source.chance.choice(["open", "merged", "merged", "closed"])
    return source.change(PULL_REQUEST, source.any(PULL_REQUEST), status=status)


def pull_request_given_away(source: _Source) -> Line | None:
    user = source.any(USER)
    return user and source.change(PULL_REQUEST, source.any(PULL_REQUEST), author=user["username"])


def payment_made(source: _Source) -> Line | None:
    user = source.any(USER)
    verified = source.chance.random() < 0.25
    return user and source.put(PAYMENT_INFO, {"id": source.count, "user_id": user["id"], "verified": verified})


def payment_verified(source: _Source) -> Line | None:
    return source.change(PAYMENT_INFO, source.any(PAYMENT_INFO), verified=source.chance.random() < 0.75)


def payment_moved(source: _Source) -> Line | None:
    user = source.any(USER)
    return user and source.change(PAYMENT_INFO, source.any(PAYMENT_INFO), user_id=user["id"])


def payment_deleted(source: _Source) -> Line | None:
    return source.delete(PAYMENT_INFO, source.any(PAYMENT_INFO))


MIX: dict[Callable[[_Source], Line | None], int] = {
    # How often each happens in the demo; its 362 users are not in the mix: their number is asked for.
    repo_counted: 302,
    repo_created: 213,
    repo_described: 20,
    repo_deleted: 4,
    star_given: 353,
    star_taken_back: 53,
    pull_request_opened: 110,
    pull_request_moved: 70,
    pull_request_given_away: 9,
    payment_made: 119,
    payment_verified: 74,
    payment_moved: 14,
    payment_deleted: 8,
    user_renamed: 25,
    user_saved: 12,
    user_deleted: 10,
}


def main() -> None:
    """Writes the history to standard output as recorded topics (FORMATS.md)."""
    options = argparse.ArgumentParser(description="Writes a generated history as recorded topics.")
    options.add_argument("--events", type=int, default=40_000)
    options.add_argument("--users", type=int, default=3_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    for made in generate(given.seed, given.events, given.users):
        sys.stdout.write(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
