"""GitHub's public events (GH Archive), turned into the five change streams of a source database.

`build_history` turns each event into rows of `user`, `repo`, `pull_request` and `star`. By rule it adds changes that the events
do not have (`processor.demo.scripted_changes`). It keeps the order of the file, which is not the order of time.
Promises: pure and deterministic; `tables` is the last state of the source's own tables, not computed from `records`.
"""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processor.demo.agenda import Agenda
from processor.demo.broken_records import BROKEN_RECORDS
from processor.demo.demo_tables import PULL_REQUEST_TABLE, REPO_TABLE, STAR_TABLE, DemoRow, RecordedLine
from processor.demo.scripted_changes import ScriptedChanges
from processor.demo.source_database import SourceDatabase

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
        """Writes a repository as the event has it. Its owner is the login of the event, which no rename changes."""
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
