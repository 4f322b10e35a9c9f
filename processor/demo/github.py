"""GitHub's public events (GH Archive) retold as a source database's five change streams.

`history` maps each event to rows of `user`, `repo`, `pull_request` and `star`, adds what the events lack by rule
(`processor.demo.beats`), and keeps the order of the file, which is not the order of time.
Promises: pure and deterministic; `tables` is the last state as the source itself kept it, not read back from `records`.
"""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processor.demo.agenda import Agenda
from processor.demo.beats import Beats
from processor.demo.dead_letters import DEAD_LETTERS
from processor.demo.recorded import PULL_REQUEST, REPO, STAR, Line, Row
from processor.demo.source import Source

HEARTBEAT_EVERY = 60
"""Events between two heartbeats; a dead letter, while there are any, falls half-way between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Recorded lines in the order in which they are produced, and the last state: table -> primary key -> row.

    Timestamps are RFC 3339 text with `Z`; rows hold str, int, bool and None only.
    """

    records: list[Line]
    tables: dict[str, dict[tuple[Any, ...], Row]]


def load_events(path: Path) -> list[Row]:
    """The events of a gzipped file of JSON lines in GH Archive's shape."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def history(events: Iterable[Row]) -> History:
    """The change streams that `events` and the beats make."""
    source, agenda = Source(), Agenda()
    github = _GitHub(source, Beats(source, agenda))
    for event in events:
        source.wait(event["created_at"])
        number = agenda.next_event()
        if number % HEARTBEAT_EVERY == 0:
            source.heartbeat()
        which = number // HEARTBEAT_EVERY
        if number % HEARTBEAT_EVERY == HEARTBEAT_EVERY // 2 and which < len(DEAD_LETTERS):
            source.dead_letter(*DEAD_LETTERS[which])
        github.happens(event)
    agenda.finish()
    return History(records=source.records, tables=source.tables)


class _GitHub:
    """What each kind of event does to the tables. People are known by GitHub's id: a name may change."""

    def __init__(self, source: Source, beats: Beats) -> None:
        self._source = source
        self._beats = beats
        self._emails: dict[int, str] = {}

    def happens(self, event: Row) -> None:
        email = self._email(event["actor"])
        owner, name = event["repo"]["name"].split("/")
        match event["type"], event["payload"]:
            case "WatchEvent", _:
                names = {"username": self._beats.names[email], "repo_name": name, "repo_owner": owner}
                self._star({**names, "created_at": event["created_at"]}, email)
            case "ForkEvent", payload:
                self._repo(payload["forkee"])
                self._forked(owner, name)
            case "PullRequestEvent", payload:
                self._pull_request(name, owner, payload)
            case "CreateEvent", payload if payload["ref_type"] == "repository":
                self._created(owner, name, payload["description"], event["created_at"])

    def _email(self, person: Row) -> str:
        """By what the person is known whatever the login; on first sight, tells of the person."""
        email = self._emails.get(person["id"])
        if email is None:
            email = self._emails[person["id"]] = f"{person['login']}@users.noreply.example"
            names = {"email": email, "username": person["login"]}
            self._beats.person({"id": person["id"], **names, "registered_at": self._source.now})
        return email

    def _star(self, star: Row, email: str) -> None:
        self._source.put(STAR, star)
        self._beats.star(star, email)

    def _repo(self, repo: Row) -> None:
        """A repository as it was seen; its owner in the row is the login in the data, a rename does not move it."""
        self._email(repo["owner"])
        owner, name = repo["owner"]["login"], repo["name"]
        counts = {"star_count": repo["stargazers_count"], "fork_count": repo["forks_count"]}
        times = {"created_at": repo["created_at"], "updated_at": repo["updated_at"]}
        self._put_repo({"owner": owner, "name": name, "description": repo["description"], **counts, **times})

    def _created(self, owner: str, name: str, description: str | None, at: str) -> None:
        row = {"owner": owner, "name": name, "description": description}
        if not self._source.update(REPO, owner, name, description=description):
            self._put_repo({**row, "star_count": 0, "fork_count": 0, "created_at": at, "updated_at": at})

    def _put_repo(self, row: Row) -> None:
        if self._source.put(REPO, row):
            self._beats.repo(row["owner"], row["name"])

    def _forked(self, owner: str, name: str) -> None:
        repo = self._source.get(REPO, owner, name)
        if repo is not None:
            self._source.update(REPO, owner, name, fork_count=repo["fork_count"] + 1)

    def _pull_request(self, name: str, owner: str, payload: Row) -> None:
        pull = payload["pull_request"]
        for side in ("base", "head"):
            # The head is null when its repository is gone.
            if pull[side]["repo"] is not None:
                self._repo(pull[side]["repo"])
        author = self._beats.names[self._email(pull["user"])]
        key = (name, owner, pull["number"])
        status = "merged" if pull["merged"] else pull["state"]
        if self._source.update(PULL_REQUEST, *key, title=pull["title"], status=status):
            return
        names = {"repo": name, "repo_owner": owner, "index": pull["number"], "author": author, "title": pull["title"]}
        status = self._beats.pull_request(key, status)
        self._source.put(PULL_REQUEST, {**names, "status": status, "created_at": pull["created_at"]})
