"""Generate a history of the demo's five tables: any number of records, in the demo's mix of kinds.

    python benchmarks/inputs/history.py --events 40000 --users 3000 > history.jsonl

Promises: streaming (the tables stay in memory, the records do not), the same lines for the same seed, plain rows, one
partition for each key, rising times. All users exist by the middle of the history. A few rows are much more popular than the
others. Does not: generate broken records or control records; `processor.tools.demo.github` does.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import accumulate, islice
from typing import Any

from processor.tools.demo.github import (
    DEMO_TABLES,
    PAYMENT_INFO_TABLE,
    PULL_REQUEST_TABLE,
    REPO_TABLE,
    STAR_TABLE,
    USER_TABLE,
    DemoRow,
    DemoTable,
    RecordedLine,
    recorded_line,
)

START_TIME = 1_420_070_400_000
"""The time of the first record, in milliseconds."""
RECORD_INTERVAL = 250
"""The time from one record to the next, in milliseconds."""


def generate_history(seed: int, events: int = 40_000, users: int = 3_000) -> Iterator[RecordedLine]:
    """Exactly `events` recorded lines, which create up to `users` users. The lines depend on all three arguments."""
    return islice(_lines(_Source(random.Random(seed)), max(events // 2 // max(users, 1), 1), users), events)


def _lines(source: "_Source", every: int, users: int) -> Iterator[RecordedLine]:
    """A new user every `every` records until `users` exist; between them records of the kinds of `MIX`, by their shares."""
    kinds, shares = list(MIX), list(accumulate(MIX.values()))
    created = 0
    while True:
        if created < users and source.count >= created * every:
            created += 1
            yield user_created(source)
        made = source.chance.choices(kinds, cum_weights=shares)[0](source)
        # None: no row exists yet that this kind could change.
        if made is not None:
            yield made


class _Rows:
    """The rows of one table, with access to any row in constant time."""

    def __init__(self, table: DemoTable) -> None:
        self._table = table
        self._rows: list[DemoRow] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def put(self, row: DemoRow) -> None:
        place = self._places.setdefault(self._table.key_of(row), len(self._rows))
        self._rows[place : place + 1] = [row]

    def delete(self, row: DemoRow) -> None:
        place, last = self._places.pop(self._table.key_of(row)), self._rows.pop()
        if place < len(self._rows):
            self._rows[place] = last
            self._places[self._table.key_of(last)] = place

    def at(self, share: float) -> DemoRow | None:
        """The row at `share` (0 up to 1) of the table, or None if it is empty."""
        return self._rows[int(len(self._rows) * share)] if self._rows else None


class _Source:
    """The tables, and the line that each change writes. `count`: the lines so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self._tables = {table.name: _Rows(table) for table in DEMO_TABLES}

    @property
    def now(self) -> str:
        return datetime.fromtimestamp((START_TIME + self.count * RECORD_INTERVAL) // 1000, UTC).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )

    def any(self, table: DemoTable, favour: int = 1) -> DemoRow | None:
        """A random row. `favour` above 1 prefers older rows: with 3, half of the picks are in the oldest eighth."""
        return self._tables[table.name].at(self.chance.random() ** favour)

    def put(self, table: DemoTable, row: DemoRow) -> RecordedLine:
        self._tables[table.name].put(row)
        return self._line(table, row, row)

    def change(self, table: DemoTable, row: DemoRow | None, **columns: object) -> RecordedLine | None:
        return None if row is None else self.put(table, {**row, **columns})

    def delete(self, table: DemoTable, row: DemoRow | None) -> RecordedLine | None:
        if row is None:
            return None
        self._tables[table.name].delete(row)
        return self._line(table, row, None)

    def _line(self, table: DemoTable, keyed: DemoRow, value: DemoRow | None) -> RecordedLine:
        self.count += 1
        return recorded_line(
            table.name,
            {column: keyed[column] for column in table.key},
            value,
            START_TIME + self.count * RECORD_INTERVAL,
        )


def user_created(source: _Source) -> RecordedLine:
    name = f"user{source.count}"
    row = {"id": source.count, "email": f"{name}@users.noreply.example", "username": name}
    return source.put(USER_TABLE, {**row, "registered_at": source.now})


def user_renamed(source: _Source) -> RecordedLine | None:
    """Changes the join key of a user, but not that of the user's stars and pull requests."""
    return source.change(USER_TABLE, source.any(USER_TABLE), username=f"renamed{source.count}")


def user_saved(source: _Source) -> RecordedLine | None:
    return source.change(USER_TABLE, source.any(USER_TABLE))


def user_deleted(source: _Source) -> RecordedLine | None:
    return source.delete(USER_TABLE, source.any(USER_TABLE))


def repo_created(source: _Source) -> RecordedLine | None:
    owner = source.any(USER_TABLE)
    if owner is None:
        return None
    row = {"owner": owner["username"], "name": f"repo{source.count}", "description": f"Made at {source.now}, “as is”"}
    counts = {"star_count": 0, "fork_count": 0}
    return source.put(REPO_TABLE, {**row, **counts, "created_at": source.now, "updated_at": source.now})


def repo_described(source: _Source) -> RecordedLine | None:
    return source.change(
        REPO_TABLE, source.any(REPO_TABLE, favour=3), description=f"Said at {source.now}", updated_at=source.now
    )


def repo_counted(source: _Source) -> RecordedLine | None:
    """Makes a change that no document shows."""
    repo = source.any(REPO_TABLE, favour=3)
    return repo and source.change(REPO_TABLE, repo, star_count=repo["star_count"] + 1)


def repo_deleted(source: _Source) -> RecordedLine | None:
    return source.delete(REPO_TABLE, source.any(REPO_TABLE))


def star_given(source: _Source) -> RecordedLine | None:
    """Adds a star. As in the demo, two in three are of a repository without a row; a few repositories get most of them."""
    user, repo = source.any(USER_TABLE, favour=2), source.any(REPO_TABLE, favour=3)
    if user is None or repo is None:
        return None
    if source.chance.random() < 2 / 3:
        repo = {"owner": "elsewhere", "name": f"repo{int(5_000 * source.chance.random() ** 3)}"}
    row = {"username": user["username"], "repo_name": repo["name"], "repo_owner": repo["owner"]}
    return source.put(STAR_TABLE, {**row, "created_at": source.now})


def star_taken_back(source: _Source) -> RecordedLine | None:
    return source.delete(STAR_TABLE, source.any(STAR_TABLE))


def pull_request_opened(source: _Source) -> RecordedLine | None:
    user, repo = source.any(USER_TABLE, favour=2), source.any(REPO_TABLE)
    if user is None or repo is None:
        return None
    key = {"repo": repo["name"], "repo_owner": repo["owner"], "index": source.count}
    row = {
        "author": user["username"],
        "title": f"Fix “{repo['name']}”",
        "status": source.chance.choice(["open", "draft"]),
    }
    return source.put(PULL_REQUEST_TABLE, {**key, **row, "created_at": source.now})


def pull_request_moved(source: _Source) -> RecordedLine | None:
    status = source.chance.choice(["open", "merged", "merged", "closed"])
    return source.change(PULL_REQUEST_TABLE, source.any(PULL_REQUEST_TABLE), status=status)


def pull_request_given_away(source: _Source) -> RecordedLine | None:
    user = source.any(USER_TABLE)
    return user and source.change(PULL_REQUEST_TABLE, source.any(PULL_REQUEST_TABLE), author=user["username"])


def payment_made(source: _Source) -> RecordedLine | None:
    user = source.any(USER_TABLE)
    verified = source.chance.random() < 0.25
    return user and source.put(PAYMENT_INFO_TABLE, {"id": source.count, "user_id": user["id"], "verified": verified})


def payment_verified(source: _Source) -> RecordedLine | None:
    return source.change(PAYMENT_INFO_TABLE, source.any(PAYMENT_INFO_TABLE), verified=source.chance.random() < 0.75)


def payment_moved(source: _Source) -> RecordedLine | None:
    user = source.any(USER_TABLE)
    return user and source.change(PAYMENT_INFO_TABLE, source.any(PAYMENT_INFO_TABLE), user_id=user["id"])


def payment_deleted(source: _Source) -> RecordedLine | None:
    return source.delete(PAYMENT_INFO_TABLE, source.any(PAYMENT_INFO_TABLE))


MIX: dict[Callable[[_Source], RecordedLine | None], int] = {
    # How often each kind occurs in the demo. Its 362 new users are not in the mix, because the caller gives their number.
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
    """Writes the history to standard output as recorded topics (docs/formats.md)."""
    options = argparse.ArgumentParser(description="Writes a generated history as recorded topics.")
    options.add_argument("--events", type=int, default=40_000)
    options.add_argument("--users", type=int, default=3_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    for made in generate_history(given.seed, given.events, given.users):
        sys.stdout.write(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
