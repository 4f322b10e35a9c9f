"""The product user_profile as a Pathway program. It runs in Pathway's own virtual environment, on one thread of the engine.

    python pathway_program.py HISTORY DOCUMENTS BATCH

Promises: one connector reads all tables in the order of the events, and commits after BATCH events, as `statestore try` does.
Pathway writes each change of a document to DOCUMENTS. Does not: keep state on disk (persistence is off), or cut the pull requests
to 1,000.
"""

import json
import sys
from typing import Any

import pathway as pw


class History(pw.Schema):  # type: ignore[misc]
    """The columns of all tables; a column that the table of the row does not have is None. `number` is the column `id`, because
    Pathway itself uses that name."""

    table: str = pw.column_definition(primary_key=True)
    key: str = pw.column_definition(primary_key=True)
    number: int | None = pw.column_definition(default_value=None)
    email: str | None = pw.column_definition(default_value=None)
    username: str | None = pw.column_definition(default_value=None)
    owner: str | None = pw.column_definition(default_value=None)
    name: str | None = pw.column_definition(default_value=None)
    description: str | None = pw.column_definition(default_value=None)
    repo: str | None = pw.column_definition(default_value=None)
    repo_name: str | None = pw.column_definition(default_value=None)
    repo_owner: str | None = pw.column_definition(default_value=None)
    index: int | None = pw.column_definition(default_value=None)
    author: str | None = pw.column_definition(default_value=None)
    title: str | None = pw.column_definition(default_value=None)
    status: str | None = pw.column_definition(default_value=None)
    created_at: str | None = pw.column_definition(default_value=None)
    user_id: int | None = pw.column_definition(default_value=None)
    verified: bool | None = pw.column_definition(default_value=None)


COLUMNS = frozenset(History.column_names())


class HistorySubject(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """Sends each event as an upsert or a delete."""

    def __init__(self, path: str, batch: int) -> None:
        super().__init__(session_type="upsert")
        self._path, self._batch = path, batch

    def run(self) -> None:
        with open(self._path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                event = json.loads(line)
                place = {"table": event["topic"], "key": json.dumps(event["key"])}
                row = event["value"]
                if row is None:
                    self.delete(**place)
                else:
                    self.next(**place, number=row.get("id"), **{column: row[column] for column in row.keys() & COLUMNS})
                if number % self._batch == 0:
                    self.commit()


def user_profiles(history: pw.Table) -> pw.Table:
    """One row for each user, with the lists as sorted tuples."""
    user, star, repo, pull_request, payment = (
        history.filter(pw.this.table == name) for name in ("user", "star", "repo", "pull_request", "payment_info")
    )
    starred = (
        star.join_left(repo, star.repo_owner == repo.owner, star.repo_name == repo.name)
        .select(
            star.username,
            place=pw.make_tuple(_newest_first(star), star.repo_name, star.repo_owner, repo.description),
        )
        .groupby(pw.this.username)
        .reduce(pw.this.username, starred_repos=pw.reducers.sorted_tuple(pw.this.place))
    )
    opened = (
        pull_request.select(
            pw.this.author,
            place=pw.make_tuple(
                _newest_first(pw.this),
                pw.this.repo,
                pw.this.repo_owner,
                pw.this.index,
                pw.this.title,
                pw.this.status,
                pw.this.created_at,
            ),
        )
        .groupby(pw.this.author)
        .reduce(pw.this.author, pull_requests=pw.reducers.sorted_tuple(pw.this.place))
    )
    paid = payment.groupby(pw.this.user_id).reduce(
        pw.this.user_id, first=pw.reducers.min(pw.make_tuple(pw.this.number, pw.this.verified))
    )
    return (
        user.join_left(starred, user.username == starred.username)
        .select(user.number, user.email, user.username, starred.starred_repos)
        .join_left(opened, pw.left.username == pw.right.author)
        .select(pw.left.number, pw.left.email, pw.left.username, pw.left.starred_repos, pw.right.pull_requests)
        .join_left(paid, pw.left.number == pw.right.user_id)
        .select(pw.left.email, pw.left.username, pw.left.starred_repos, pw.left.pull_requests, payment=pw.right.first)
    )


def _newest_first(row: Any) -> Any:
    """A number that sorts later times first."""
    return -pw.unwrap(row.created_at).dt.strptime("%Y-%m-%dT%H:%M:%SZ", contains_timezone=False).dt.timestamp("s")


def main() -> None:
    source, target, batch = sys.argv[1:]
    history = pw.io.python.read(HistorySubject(source, int(batch)), schema=History, autocommit_duration_ms=None)
    pw.io.jsonlines.write(user_profiles(history), target)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main()
