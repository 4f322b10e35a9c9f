"""Scripted changes, which GitHub's two hours do not have: renames, deletes, removed stars, payments and edits, made by rule.

Each rule counts the earlier rows of its kind (`n % 36 == 7`: one of every 36). So the changes are the same in each run, and
spread over the whole history. Each change comes some events later, so that micro-batches mix it with others. A change of a row
that no longer exists does nothing. The numbers make each kind of change occur in `examples/github`.
"""

from collections import Counter
from functools import partial

from processor.demo.agenda import Action, Agenda
from processor.demo.demo_tables import (
    PAYMENT_INFO_TABLE,
    PULL_REQUEST_TABLE,
    REPO_TABLE,
    STAR_TABLE,
    USER_TABLE,
    DemoRow,
)
from processor.demo.source_database import SourceDatabase

DRAFT = "draft"


class ScriptedChanges:
    """Makes changes that follow each new row. The caller adds the rows in the order of the events.

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
