"""GitHub's public events (GH Archive), turned into the five change streams of an imaginary source database.

`build_history` turns each event into rows of `user`, `repo`, `pull_request` and `star`. It keeps the order of the file, which is
not the order of time. By rule it adds changes that the events do not have (`ScriptedChanges`): renames, deletes, removed stars,
payments and edits.

`SourceDatabase` has five tables, and the recorded lines (docs/formats.md) that each change of a row writes. Changes of `user`,
`repo` and `pull_request` are Debezium envelopes without schema. Changes of `payment_info` are flattened (ExtractNewRecordState),
and those of `star` are plain rows.

Promises: pure and deterministic. Every topic has `TOPIC_PARTITIONS` partitions, and a key stays in one of them. `tables` is the
last state of the source's own tables, not computed from `records`, so a test can compare a reader of the records with `tables`.
"""

import gzip
import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

DemoRow = dict[str, Any]
RecordedLine = dict[str, Any]
"""One recorded Kafka record: topic, partition, key, value, timestamp."""

SOURCE_NAME = "github"
TOPIC_PARTITIONS = 2
TRANSACTION_TOPIC = f"{SOURCE_NAME}.transaction"
HEARTBEAT_TOPIC = f"__debezium-heartbeat.{SOURCE_NAME}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The place of a change in the source's log."""

    lsn: int
    tx: int
    at: int
    """In milliseconds."""
    snapshot: bool = False
    transaction: Mapping[str, Any] | None = None
    """Set inside an explicit transaction."""


RowWrite = Callable[["DemoTable", DemoRow, DemoRow | None, str, Commit], list[Any]]
"""Returns the values that a change writes to its topic, from key, new row (None: deleted), op (`r c u d`) and commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTable:
    """A table of the source; its topic has the name of the table."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    write: RowWrite

    def key_of(self, row: DemoRow) -> tuple[Any, ...]:
        """The primary key of `row`."""
        return tuple(row[column] for column in self.key)


def write_envelope(table: DemoTable, key: DemoRow, row: DemoRow | None, op: str, commit: Commit) -> list[Any]:
    """Debezium's envelope. `before` is null, except in a delete, which has the key only; a tombstone follows a delete."""
    before = {column: key.get(column) for column in table.columns} if row is None else None
    value = {
        "before": before,
        "after": row,
        "source": _source(table, commit),
        "transaction": commit.transaction,
        "op": op,
        "ts_ms": commit.at + 100,
    }
    return [value, None] if row is None else [value]


def write_flattened(table: DemoTable, key: DemoRow, row: DemoRow | None, op: str, commit: Commit) -> list[Any]:
    """The form of ExtractNewRecordState with rewritten deletes: the row, `__deleted` as text, and some fields of the source."""
    columns = {column: key.get(column) for column in table.columns} if row is None else row
    marks = {"__deleted": "true" if row is None else "false", "__op": op, "__table": table.name, "__lsn": commit.lsn}
    return [{**columns, **marks, "__source_ts_ms": commit.at}]


def write_plain(table: DemoTable, key: DemoRow, row: DemoRow | None, op: str, commit: Commit) -> list[Any]:
    """The row itself; null is a delete."""
    return [row]


def _source(table: DemoTable, commit: Commit) -> DemoRow:
    return {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": SOURCE_NAME,
        "ts_ms": commit.at,
        "snapshot": "true" if commit.snapshot else "false",
        "db": SOURCE_NAME,
        "schema": "public",
        "table": table.name,
        "txId": commit.tx,
        "lsn": commit.lsn,
    }


def change_lines(
    table: DemoTable, key: Sequence[Any], row: DemoRow | None, op: str, commit: Commit
) -> list[RecordedLine]:
    """The lines that one change of one row writes to its topic."""
    names = dict(zip(table.key, key, strict=True))
    image = None if row is None else dict(row)
    return [
        recorded_line(table.name, names, value, commit.at) for value in table.write(table, names, image, op, commit)
    ]


def recorded_line(topic: str, key: Any, value: Any, timestamp: int) -> RecordedLine:
    """One recorded line in the partition of its key. `timestamp` is in milliseconds."""
    return {"topic": topic, "partition": partition_of(key), "key": key, "value": value, "timestamp": timestamp}


def partition_of(key: Any) -> int:
    """The partition of a key, the same on every machine and in every run."""
    text = json.dumps(key, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return crc32(text.encode()) % TOPIC_PARTITIONS


USER_TABLE = DemoTable(
    name="user", key=("email",), columns=("id", "email", "username", "registered_at"), write=write_envelope
)
REPO_TABLE = DemoTable(
    name="repo",
    key=("owner", "name"),
    columns=("owner", "name", "description", "star_count", "fork_count", "created_at", "updated_at"),
    write=write_envelope,
)
PULL_REQUEST_TABLE = DemoTable(
    name="pull_request",
    key=("repo", "repo_owner", "index"),
    columns=("repo", "repo_owner", "index", "author", "title", "status", "created_at"),
    write=write_envelope,
)
STAR_TABLE = DemoTable(
    name="star",
    key=("username", "repo_name", "repo_owner"),
    columns=("username", "repo_name", "repo_owner", "created_at"),
    write=write_plain,
)
PAYMENT_INFO_TABLE = DemoTable(
    name="payment_info", key=("id",), columns=("id", "user_id", "verified"), write=write_flattened
)

DEMO_TABLES = (USER_TABLE, REPO_TABLE, PULL_REQUEST_TABLE, STAR_TABLE, PAYMENT_INFO_TABLE)


class SourceDatabase:
    """The database and its log. Before the first update or delete, the log has each insert as a row of a snapshot."""

    def __init__(self) -> None:
        self.records: list[RecordedLine] = []
        self.tables: dict[str, dict[tuple[Any, ...], DemoRow]] = {table.name: {} for table in DEMO_TABLES}
        self._now = 0
        self._lsn = 21_713_520
        self._tx = 734
        self._snapshot = True
        self._open: tuple[str, Counter[str]] | None = None

    @property
    def now(self) -> str:
        """The time of the source's clock as RFC 3339 text."""
        return datetime.fromtimestamp(self._now // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def move_clock(self, until: str) -> None:
        """Moves the clock forward to `until` (RFC 3339). The clock never moves back, although events are not in order of time."""
        self._now = max(self._now, int(datetime.fromisoformat(until).timestamp() * 1000))

    def get(self, table: DemoTable, *key: Any) -> DemoRow | None:
        """The row with the key, or None. Change it through `put` and `update` only."""
        return self.tables[table.name].get(key)

    def put(self, table: DemoTable, row: DemoRow) -> bool:
        """Inserts or replaces a whole row. Returns True for an insert."""
        key = table.key_of(row)
        new = key not in self.tables[table.name]
        self.tables[table.name][key] = {column: row[column] for column in table.columns}
        self._log(table, key, "c" if new else "u")
        return new

    def update(self, table: DemoTable, *key: Any, **columns: Any) -> bool:
        """Changes columns of a row; without columns it writes the same row again. Returns False if there is no such row."""
        row = self.get(table, *key)
        if row is None:
            return False
        self.put(table, {**row, **columns})
        return True

    def delete(self, table: DemoTable, *key: Any) -> bool:
        """Deletes a row. Returns False if there is no such row."""
        if self.tables[table.name].pop(key, None) is None:
            return False
        self._log(table, key, "d")
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Puts the changes of the block into one transaction, and writes its bounds to the transaction topic."""
        self._tx += 1
        identity = f"{self._tx}:{self._lsn}"
        self._write_bound("BEGIN", identity, None)
        changed: Counter[str] = Counter()
        self._open = (identity, changed)
        yield
        self._open = None
        self._write_bound("END", identity, changed)

    def write_heartbeat(self) -> None:
        """Writes a record which shows only that the source is alive."""
        self.records.append(
            recorded_line(HEARTBEAT_TOPIC, {"serverName": SOURCE_NAME}, {"ts_ms": self._now}, self._now)
        )

    def write_broken_record(self, topic: str, key: Any, value: Any) -> None:
        """Writes a record that breaks its contract. It changes no table."""
        self.records.append(recorded_line(topic, key, value, self._now))

    def _log(self, table: DemoTable, key: tuple[Any, ...], op: str) -> None:
        self._snapshot = self._snapshot and op == "c"
        row = self.tables[table.name].get(key)
        self.records += change_lines(table, key, row, "r" if self._snapshot else op, self._commit(table))

    def _commit(self, table: DemoTable) -> Commit:
        if not self._snapshot:
            self._lsn += 168
            self._tx += self._open is None
        transaction: Mapping[str, Any] | None = None
        if self._open is not None:
            identity, changed = self._open
            changed[table.name] += 1
            transaction = {"id": identity, "total_order": changed.total(), "data_collection_order": changed[table.name]}
        return Commit(lsn=self._lsn, tx=self._tx, at=self._now, snapshot=self._snapshot, transaction=transaction)

    def _write_bound(self, status: str, identity: str, changed: Counter[str] | None) -> None:
        tables = changed and [{"data_collection": f"public.{t}", "event_count": n} for t, n in sorted(changed.items())]
        value = {
            "status": status,
            "id": identity,
            "event_count": changed and changed.total(),
            "data_collections": tables,
            "ts_ms": self._now,
        }
        self.records.append(recorded_line(TRANSACTION_TOPIC, {"id": identity}, value, self._now))


Action = Callable[[], object]


class Agenda:
    """Actions that run a number of events later. Time is a count of events.

    Actions that are due at the same event run in the order in which they were added.
    """

    def __init__(self) -> None:
        self._event = 0
        self._added = 0
        self._due: list[tuple[int, int, Action]] = []

    def run_later(self, events: int, action: Action) -> None:
        """Runs `action` at the start of the event that comes `events` events later."""
        self._added += 1
        heapq.heappush(self._due, (self._event + events, self._added, action))

    def start_event(self) -> int:
        """Counts one event and runs the actions that are due. Returns the number of the event, from 1."""
        self._event += 1
        while self._due and self._due[0][0] <= self._event:
            heapq.heappop(self._due)[2]()
        return self._event

    def run_all(self) -> None:
        """Runs all remaining actions, and the actions that these add."""
        while self._due:
            self.start_event()


_EMAIL = "octocat@users.noreply.example"
_REPO = {"owner": "octocat", "name": "hello-world"}
_PULL = {"repo": "hello-world", "repo_owner": "octocat", "index": 7}
_CREATED_AT = "2015-01-01T00:00:00Z"


def _created(row: dict[str, Any]) -> dict[str, Any]:
    return {"before": None, "after": row, "source": {}, "transaction": None, "op": "c", "ts_ms": 1420070400000}


# One record for each way in which a record may break its contract. The job makes dead letters of them.
BROKEN_RECORDS: tuple[tuple[str, Any, Any], ...] = (
    # Topic, key, value. Broken JSON:
    ("user", {"email": _EMAIL}, '{"before":null,"after":{"email":"octocat@users.nor'),
    # A part of the key is missing, in the key and in the row:
    ("star", {"username": "octocat", "repo_name": "hello-world"}, {"username": "octocat", "created_at": _CREATED_AT}),
    # A part of the key is null:
    ("payment_info", {"id": None}, {"id": None, "user_id": 583231, "verified": True, "__deleted": "false"}),
    # A value of the wrong type, three times:
    ("repo", _REPO, _created({**_REPO, "description": "hi", "star_count": "many", "fork_count": 0})),
    (
        "user",
        {"email": _EMAIL},
        _created({"id": 583231, "email": _EMAIL, "username": "octocat", "registered_at": "once"}),
    ),
    ("payment_info", {"id": 1}, {"id": 1, "user_id": 583231, "verified": "maybe", "__deleted": "false"}),
    # Key and row disagree:
    ("pull_request", _PULL, _created({**_PULL, "index": 8, "author": "octocat", "title": "x", "status": "open"})),
)


DRAFT = "draft"


class ScriptedChanges:
    """Makes changes that GitHub's two hours do not have, by rule. The caller adds the rows in the order of the events.

    Each rule counts the earlier rows of its kind (`n % 36 == 7`: one of every 36). So the changes are the same in each run, and
    spread over the whole history. Each change comes some events later, so that micro-batches mix it with others. A change of a
    row that no longer exists does nothing. The numbers make each kind of change occur in `examples/github`.

    `usernames` maps each e-mail to its username, also while the user has no row.
    """

    def __init__(self, source: SourceDatabase, agenda: Agenda) -> None:
        self.usernames: dict[str, str] = {}
        self._source = source
        self._run_later = agenda.run_later
        self._counts: Counter[str] = Counter()
        self._stars_by: Counter[str] = Counter()
        self._stars_of: Counter[tuple[str, str]] = Counter()
        self._users: list[DemoRow] = []
        self._free_names: list[str] = []

    def add_user(self, user: DemoRow) -> None:
        """Adds a user. Some rows of users come late: after their stars, pull requests and payments."""
        n, email = len(self._users), user["email"]
        self._users.append(user)
        self.usernames[email] = user["username"]
        if n % 12 == 3:
            self._run_later(30, partial(self._source.put, USER_TABLE, user))
        else:
            self._source.put(USER_TABLE, user)
        if n % 3 == 0:
            self._run_later(n % 7, partial(self._add_payment, n))
        if n % 30 == 14:
            self._run_later(32, partial(self._source.update, USER_TABLE, email))
        if n % 36 == 7:
            self._run_later(60, partial(self._rename, email, with_rows=n % 72 == 7))
        if n % 120 == 32:
            self._run_later(50, partial(self._take_free_name, email))
        if n % 36 == 11:
            self._run_later(90, partial(self._source.delete, USER_TABLE, email))
        if n % 72 == 11:
            self._run_later(140, partial(self._create_again, email))

    def add_repo(self, owner: str, name: str) -> None:
        """Adds a repository, whose row exists."""
        n = self._count("repo")
        if n % 20 == 6:
            self._run_later(40, partial(self._change_description, owner, name))
        if n % 30 == 10:
            self._run_later(20, partial(self._source.update, REPO_TABLE, owner, name))
        if n % 50 == 21:
            self._run_later(80, partial(self._source.delete, REPO_TABLE, owner, name))

    def add_star(self, star: DemoRow, email: str) -> None:
        """Adds a star. The repository counts its stars: the third makes a missing row, the fifth a new description."""
        n, repo = self._count("star"), (star["repo_owner"], star["repo_name"])
        self._stars_by[email] += 1
        if self._stars_by[email] == 4:
            self._rename_active_user(email)
        self._stars_of[repo] += 1
        self._count_stars(*repo, by=1)
        if self._stars_of[repo] == 3:
            self._run_later(15, partial(self._add_missing_row, *repo))
        if self._stars_of[repo] == 5:
            self._run_later(25, partial(self._change_description, *repo))
        if n % 10 == 4:
            self._run_later(40, partial(self._remove_star, star))
        if n % 30 == 4:
            self._run_later(70, partial(self._source.put, STAR_TABLE, star))

    def add_pull_request(self, key: tuple[str, str, int], status: str) -> str:
        """Adds a pull request with the status of its event. Returns the status of its row: some open ones begin as drafts."""
        n = self._count("pull_request")
        if n % 16 == 5:
            self._run_later(50, partial(self._source.update, PULL_REQUEST_TABLE, *key, author=key[1]))
        if n % 48 == 13:
            self._run_later(50, partial(self._source.update, PULL_REQUEST_TABLE, *key, author=None))
        if status == "closed" and self._count("closed") % 2 == 1:
            self._run_later(30, partial(self._source.update, PULL_REQUEST_TABLE, *key, status="open"))
        if n % 5 == 2 and status == "open":
            if n % 10 == 2:
                self._run_later(25, partial(self._open_draft, key))
            return DRAFT
        return status

    def _count(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]

    def _rename_active_user(self, email: str) -> None:
        """Renames every third user who gave a fourth star, every ninth together with the stars."""
        n = self._count("active user")
        if n % 3 == 1:
            self._run_later(10, partial(self._rename, email, with_rows=n % 9 == 4))

    def _add_payment(self, n: int) -> None:
        m = self._count("payment_info")
        row = {"id": 9000 + m, "user_id": self._users[n]["id"], "verified": m % 4 == 0}
        self._source.put(PAYMENT_INFO_TABLE, row)

        def change(**columns: object) -> Action:
            return partial(self._source.update, PAYMENT_INFO_TABLE, row["id"], **columns)

        if m % 4 in (1, 2):
            self._run_later(30, change(verified=True))
        if m % 8 == 1:
            self._run_later(70, change(verified=False))
        if m % 12 == 5:
            # User n - 1 had no payment (every third user gets one); user n - 3 has two after this change.
            to = n - 1 if m % 24 == 5 else n - 3
            self._run_later(50, change(user_id=self._users[to]["id"]))
        if m % 30 == 9:
            self._run_later(50, change(user_id=None))
        if m % 15 == 8:
            self._run_later(60, partial(self._source.delete, PAYMENT_INFO_TABLE, row["id"]))

    def _rename(self, email: str, *, with_rows: bool) -> None:
        """Changes the join key of a user; `with_rows` also that of the stars and pull requests, in the same transaction."""
        if self._source.get(USER_TABLE, email) is None:
            return
        old = self.usernames[email]
        with self._source.transaction():
            self._set_username(email, f"{old}-renamed")
            if with_rows:
                self._rename_rows(old, self.usernames[email])
            else:
                self._free_names.append(old)

    def _rename_rows(self, old: str, new: str) -> None:
        stars = self._source.tables[STAR_TABLE.name].values()
        pulls = self._source.tables[PULL_REQUEST_TABLE.name].values()
        for star in [star for star in stars if star["username"] == old]:
            self._source.delete(STAR_TABLE, *STAR_TABLE.key_of(star))
            self._source.put(STAR_TABLE, {**star, "username": new})
        for pull in [pull for pull in pulls if pull["author"] == old]:
            self._source.put(PULL_REQUEST_TABLE, {**pull, "author": new})

    def _take_free_name(self, email: str) -> None:
        """Gives a user the former name of another user, and so the stars and pull requests that still have that name."""
        if self._free_names:
            self._set_username(email, self._free_names.pop())

    def _set_username(self, email: str, name: str) -> None:
        if self._source.update(USER_TABLE, email, username=name):
            self.usernames[email] = name

    def _create_again(self, email: str) -> None:
        user = next(user for user in self._users if user["email"] == email)
        self._source.put(USER_TABLE, {**user, "username": self.usernames[email], "registered_at": self._source.now})

    def _count_stars(self, owner: str, name: str, *, by: int) -> None:
        repo = self._source.get(REPO_TABLE, owner, name)
        if repo is not None:
            self._source.update(REPO_TABLE, owner, name, star_count=repo["star_count"] + by)

    def _remove_star(self, star: DemoRow) -> None:
        if self._source.delete(STAR_TABLE, *STAR_TABLE.key_of(star)):
            self._count_stars(star["repo_owner"], star["repo_name"], by=-1)

    def _add_missing_row(self, owner: str, name: str) -> None:
        if self._source.get(REPO_TABLE, owner, name) is not None:
            return
        counts = {"star_count": self._stars_of[owner, name], "fork_count": 0}
        times = {"created_at": self._source.now, "updated_at": self._source.now}
        self._source.put(REPO_TABLE, {"owner": owner, "name": name, "description": None, **counts, **times})
        self.add_repo(owner, name)

    def _change_description(self, owner: str, name: str) -> None:
        text = f"{name} by {owner}, described at {self._source.now}"
        self._source.update(REPO_TABLE, owner, name, description=text, updated_at=self._source.now)

    def _open_draft(self, key: tuple[str, str, int]) -> None:
        pull = self._source.get(PULL_REQUEST_TABLE, *key)
        if pull is not None and pull["status"] == DRAFT:
            self._source.update(PULL_REQUEST_TABLE, *key, status="open")


HEARTBEAT_EVERY = 60
"""Events between two heartbeats. Half-way between two of them comes the next broken record, until none remains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Recorded lines in the order in which they are produced, and the last rows: table -> primary key -> row.

    Timestamps are RFC 3339 text with `Z`; rows hold str, int, bool and None only.
    """

    records: list[RecordedLine]
    tables: dict[str, dict[tuple[Any, ...], DemoRow]]


def load_events(path: Path) -> list[DemoRow]:
    """The events of a gzipped file of JSON lines in GH Archive's shape."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def build_history(events: Iterable[DemoRow]) -> History:
    """The change streams that `events` and the scripted changes make."""
    source, agenda = SourceDatabase(), Agenda()
    github = _GitHub(source, ScriptedChanges(source, agenda))
    for event in events:
        source.move_clock(event["created_at"])
        number = agenda.start_event()
        if number % HEARTBEAT_EVERY == 0:
            source.write_heartbeat()
        broken = number // HEARTBEAT_EVERY
        if number % HEARTBEAT_EVERY == HEARTBEAT_EVERY // 2 and broken < len(BROKEN_RECORDS):
            source.write_broken_record(*BROKEN_RECORDS[broken])
        github.apply(event)
    agenda.run_all()
    return History(records=source.records, tables=source.tables)


class _GitHub:
    """Writes each kind of event to the tables. GitHub's id identifies a person, because a name may change."""

    def __init__(self, source: SourceDatabase, scripted: ScriptedChanges) -> None:
        self._source = source
        self._scripted = scripted
        self._emails: dict[int, str] = {}

    def apply(self, event: DemoRow) -> None:
        email = self._email(event["actor"])
        owner, name = event["repo"]["name"].split("/")
        match event["type"], event["payload"]:
            case "WatchEvent", _:
                names = {"username": self._scripted.usernames[email], "repo_name": name, "repo_owner": owner}
                self._star({**names, "created_at": event["created_at"]}, email)
            case "ForkEvent", payload:
                self._repo(payload["forkee"])
                self._forked(owner, name)
            case "PullRequestEvent", payload:
                self._pull_request(name, owner, payload)
            case "CreateEvent", payload if payload["ref_type"] == "repository":
                self._created(owner, name, payload["description"], event["created_at"])

    def _email(self, person: DemoRow) -> str:
        """The e-mail of a person, the same for every login. At the first event of a person this writes the user."""
        email = self._emails.get(person["id"])
        if email is None:
            email = self._emails[person["id"]] = f"{person['login']}@users.noreply.example"
            names = {"email": email, "username": person["login"]}
            self._scripted.add_user({"id": person["id"], **names, "registered_at": self._source.now})
        return email

    def _star(self, star: DemoRow, email: str) -> None:
        self._source.put(STAR_TABLE, star)
        self._scripted.add_star(star, email)

    def _repo(self, repo: DemoRow) -> None:
        """Writes a repository as in the event. Its owner is the login of the event, which no rename changes."""
        self._email(repo["owner"])
        owner, name = repo["owner"]["login"], repo["name"]
        counts = {"star_count": repo["stargazers_count"], "fork_count": repo["forks_count"]}
        times = {"created_at": repo["created_at"], "updated_at": repo["updated_at"]}
        self._put_repo({"owner": owner, "name": name, "description": repo["description"], **counts, **times})

    def _created(self, owner: str, name: str, description: str | None, at: str) -> None:
        row = {"owner": owner, "name": name, "description": description}
        if not self._source.update(REPO_TABLE, owner, name, description=description):
            self._put_repo({**row, "star_count": 0, "fork_count": 0, "created_at": at, "updated_at": at})

    def _put_repo(self, row: DemoRow) -> None:
        if self._source.put(REPO_TABLE, row):
            self._scripted.add_repo(row["owner"], row["name"])

    def _forked(self, owner: str, name: str) -> None:
        repo = self._source.get(REPO_TABLE, owner, name)
        if repo is not None:
            self._source.update(REPO_TABLE, owner, name, fork_count=repo["fork_count"] + 1)

    def _pull_request(self, name: str, owner: str, payload: DemoRow) -> None:
        pull = payload["pull_request"]
        for side in ("base", "head"):
            # The head is null when its repository was deleted.
            if pull[side]["repo"] is not None:
                self._repo(pull[side]["repo"])
        author = self._scripted.usernames[self._email(pull["user"])]
        key = (name, owner, pull["number"])
        status = "merged" if pull["merged"] else pull["state"]
        if self._source.update(PULL_REQUEST_TABLE, *key, title=pull["title"], status=status):
            return
        names = {"repo": name, "repo_owner": owner, "index": pull["number"], "author": author, "title": pull["title"]}
        status = self._scripted.add_pull_request(key, status)
        self._source.put(PULL_REQUEST_TABLE, {**names, "status": status, "created_at": pull["created_at"]})
