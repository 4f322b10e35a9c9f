"""The story that GitHub's two hours do not tell: renames, deletes, unstars, payments, edits, made by rule.

Each rule looks at how many rows of its kind came before (`n % 36 == 7`: one of every 36), so the beats are the same in
each run and spread over the whole history. Every beat is put off by some events, so that micro-batches mix them with
others; a row that is gone by then is left alone. All numbers are chosen so that each beat happens in `examples/github`.
"""

from collections import Counter
from functools import partial

from processor.demo.agenda import Action, Agenda
from processor.demo.recorded import PAYMENT_INFO, PULL_REQUEST, REPO, STAR, USER, Row
from processor.demo.source import Source

DRAFT = "draft"


class Beats:
    """Told of each new row, in the order of the events. `names`: e-mail to username, also while there is no row."""

    def __init__(self, source: Source, agenda: Agenda) -> None:
        self.names: dict[str, str] = {}
        self._source = source
        self._later = agenda.later
        self._came: Counter[str] = Counter()
        self._stars_by: Counter[str] = Counter()
        self._stars_of: Counter[tuple[str, str]] = Counter()
        self._people: list[Row] = []
        self._freed: list[str] = []

    def person(self, user: Row) -> None:
        """Somebody is met first. Some rows come late: after their stars, pull requests and payments."""
        n, email = len(self._people), user["email"]
        self._people.append(user)
        self.names[email] = user["username"]
        if n % 12 == 3:
            self._later(30, partial(self._source.put, USER, user))
        else:
            self._source.put(USER, user)
        if n % 3 == 0:
            self._later(n % 7, partial(self._payment, n))
        if n % 30 == 14:
            self._later(32, partial(self._source.update, USER, email))
        if n % 36 == 7:
            self._later(60, partial(self._rename, email, with_rows=n % 72 == 7))
        if n % 120 == 32:
            self._later(50, partial(self._take_over, email))
        if n % 36 == 11:
            self._later(90, partial(self._source.delete, USER, email))
        if n % 72 == 11:
            self._later(140, partial(self._create_again, email))

    def repo(self, owner: str, name: str) -> None:
        """A repository got its row."""
        n = self._number("repo")
        if n % 20 == 6:
            self._later(40, partial(self._describe, owner, name))
        if n % 30 == 10:
            self._later(20, partial(self._source.update, REPO, owner, name))
        if n % 50 == 21:
            self._later(80, partial(self._source.delete, REPO, owner, name))

    def star(self, star: Row, email: str) -> None:
        """A star was given. The repository counts it; the third brings a missing row, the fifth a new description."""
        n, repo = self._number("star"), (star["repo_owner"], star["repo_name"])
        self._stars_by[email] += 1
        if self._stars_by[email] == 4:
            self._busy(email)
        self._stars_of[repo] += 1
        self._count_stars(*repo, by=1)
        if self._stars_of[repo] == 3:
            self._later(15, partial(self._first_row, *repo))
        if self._stars_of[repo] == 5:
            self._later(25, partial(self._describe, *repo))
        if n % 10 == 4:
            self._later(40, partial(self._unstar, star))
        if n % 30 == 4:
            self._later(70, partial(self._source.put, STAR, star))

    def pull_request(self, key: tuple[str, str, int], status: str) -> str:
        """A pull request is seen first, in `status`; returns its row's status: some begin as drafts, some stay so."""
        n = self._number("pull_request")
        if n % 16 == 5:
            self._later(50, partial(self._source.update, PULL_REQUEST, *key, author=key[1]))
        if n % 48 == 13:
            self._later(50, partial(self._source.update, PULL_REQUEST, *key, author=None))
        if status == "closed" and self._number("closed") % 2 == 1:
            self._later(30, partial(self._source.update, PULL_REQUEST, *key, status="open"))
        if n % 5 == 2 and status == "open":
            if n % 10 == 2:
                self._later(25, partial(self._leave_draft, key))
            return DRAFT
        return status

    def _number(self, kind: str) -> int:
        self._came[kind] += 1
        return self._came[kind]

    def _busy(self, email: str) -> None:
        """Somebody gave the fourth star: every third of these is renamed, every ninth with the stars."""
        n = self._number("busy user")
        if n % 3 == 1:
            self._later(10, partial(self._rename, email, with_rows=n % 9 == 4))

    def _payment(self, n: int) -> None:
        m = self._number("payment_info")
        row = {"id": 9000 + m, "user_id": self._people[n]["id"], "verified": m % 4 == 0}
        self._source.put(PAYMENT_INFO, row)

        def change(**columns: object) -> Action:
            return partial(self._source.update, PAYMENT_INFO, row["id"], **columns)

        if m % 4 in (1, 2):
            self._later(30, change(verified=True))
        if m % 8 == 1:
            self._later(70, change(verified=False))
        if m % 12 == 5:
            # To somebody who has none (payments come to every third), or who then has two.
            to = n - 1 if m % 24 == 5 else n - 3
            self._later(50, change(user_id=self._people[to]["id"]))
        if m % 30 == 9:
            self._later(50, change(user_id=None))
        if m % 15 == 8:
            self._later(60, partial(self._source.delete, PAYMENT_INFO, row["id"]))

    def _rename(self, email: str, *, with_rows: bool) -> None:
        """A join key changes. `with_rows`: stars and pull requests follow in one transaction, else they stay behind."""
        if self._source.get(USER, email) is None:
            return
        old = self.names[email]
        with self._source.transaction():
            self._call(email, f"{old}-renamed")
            if with_rows:
                self._follow(old, self.names[email])
            else:
                self._freed.append(old)

    def _follow(self, old: str, new: str) -> None:
        stars, pulls = self._source.tables[STAR.name].values(), self._source.tables[PULL_REQUEST.name].values()
        for star in [star for star in stars if star["username"] == old]:
            self._source.delete(STAR, *STAR.key_of(star))
            self._source.put(STAR, {**star, "username": new})
        for pull in [pull for pull in pulls if pull["author"] == old]:
            self._source.put(PULL_REQUEST, {**pull, "author": new})

    def _take_over(self, email: str) -> None:
        """Somebody takes the name that another gave up, and with it what stayed behind under that name."""
        if self._freed:
            self._call(email, self._freed.pop())

    def _call(self, email: str, name: str) -> None:
        if self._source.update(USER, email, username=name):
            self.names[email] = name

    def _create_again(self, email: str) -> None:
        user = next(person for person in self._people if person["email"] == email)
        self._source.put(USER, {**user, "username": self.names[email], "registered_at": self._source.now})

    def _count_stars(self, owner: str, name: str, *, by: int) -> None:
        repo = self._source.get(REPO, owner, name)
        if repo is not None:
            self._source.update(REPO, owner, name, star_count=repo["star_count"] + by)

    def _unstar(self, star: Row) -> None:
        if self._source.delete(STAR, *STAR.key_of(star)):
            self._count_stars(star["repo_owner"], star["repo_name"], by=-1)

    def _first_row(self, owner: str, name: str) -> None:
        if self._source.get(REPO, owner, name) is not None:
            return
        counts = {"star_count": self._stars_of[owner, name], "fork_count": 0}
        times = {"created_at": self._source.now, "updated_at": self._source.now}
        self._source.put(REPO, {"owner": owner, "name": name, "description": None, **counts, **times})
        self.repo(owner, name)

    def _describe(self, owner: str, name: str) -> None:
        text = f"{name} by {owner}, described at {self._source.now}"
        self._source.update(REPO, owner, name, description=text, updated_at=self._source.now)

    def _leave_draft(self, key: tuple[str, str, int]) -> None:
        pull = self._source.get(PULL_REQUEST, *key)
        if pull is not None and pull["status"] == DRAFT:
            self._source.update(PULL_REQUEST, *key, status="open")
