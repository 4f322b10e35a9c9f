"""The roles of a registry: each does its own work, and the database refuses it the work of others."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError, ProgrammingError

from registry.edits import operations
from registry.edits.edit import Signature
from registry.errors import LeaseLost, RegistryError
from registry.model import EpochBoundary, LetterOutcome, LetterPosition, Progress, Requirements, WaitingLetters
from registry.repository import Registry
from registry.repository.connection import ROLES


@pytest.fixture
def roles(registry: Registry, required: Requirements, psql: Engine, schema: str) -> Iterator[None]:
    registry.apply(required, who="me", why="first")
    registry.create_roles()
    registry.create_roles()  # the second call changes nothing
    yield
    with psql.begin() as connection:
        for role in ROLES:
            connection.execute(text(f"DROP OWNED BY {schema}_{role}; DROP ROLE {schema}_{role}"))


@pytest.fixture
def registry_of(postgres_url: str, schema: str, roles: None) -> Iterator[dict[str, Registry]]:
    """A registry as each role sees it."""
    separator = "&" if "?" in postgres_url else "?"
    made = {role: Registry(f"{postgres_url}{separator}options=-crole%3D{schema}_{role}", schema) for role in ROLES}
    yield made
    for one in made.values():
        one.close()


def run(psql: Engine, role: str, statement: str) -> None:
    """Runs the statement in a transaction of the role that announces its edit."""
    with psql.begin() as connection:
        connection.execute(text(f"SET LOCAL ROLE {role}"))
        connection.execute(text("SELECT edit_by_hand('a test')"))
        connection.execute(text(statement))


def test_an_operator_applies_and_a_job_takes_the_steps(
    registry_of: dict[str, Registry], required: Requirements, wider: Requirements
) -> None:
    reader, job, operator, _ = (registry_of[role] for role in ROLES)
    lease = job.take_lease("job", "here", 4, take_over=False, expires_after=60)
    job.bind(job.binding())
    job.applied(lease, 1)
    for one in (job, operator):
        one.migrate(5)
    operator.apply(wider, who="op", why="an index")
    operator.operate(Signature("op", "a join to come"), operations.add_slots, 6)
    operator.operate(Signature("op", "again"), operations.republish, "profile")
    steps = 0
    while True:
        version = job.snapshot().version
        job.applied(lease, version)
        if not job.advance(lease, version, proven=("user", "star", "repo"), published=("profile",)).changes:
            break
        steps += 1
    assert steps == 3
    assert [one.version for one in reader.snapshot().products] == [2]
    operator.operate(Signature("op", "x"), operations.pause, "profile", paused=True)
    operator.operate(Signature("op", "x"), operations.pause, None, paused=True)
    operator.operate(Signature("op", "unused"), operations.retire, "repo", 1)
    operator.operate(Signature("op", "x"), operations.pause, "profile", paused=False)
    operator.operate(Signature("op", "x"), operations.remove, "profile", tombstones=True)
    for _ in range(2):
        version = job.snapshot().version
        job.applied(lease, version)
        job.advance(lease, version, proven=(), published=("profile",))
    found = reader.snapshot()
    assert (found.products, found.joins, found.assignments_of("repo")) == ((), (), ())


def test_a_job_keeps_its_lease_its_epochs_and_its_boards(registry_of: dict[str, Registry]) -> None:
    reader, job = registry_of["reader"], registry_of["job"]
    lease = job.take_lease("job", "here", 4, take_over=False, expires_after=60)
    job.renew(lease)
    job.runs.keep_report(lease, {"open_changes": 1})
    assert job.begin_attempt(lease, 0, 1) == 0
    job.add_epochs([EpochBoundary(topic="t", topic_id="x", partition=0, from_offset=0, epoch=1)])
    line = Progress(walk="fill star", rows=1, written=1, of=2, done=False, seconds=1.0)
    job.keep_progress([line])
    assert reader.progress() == (line,)
    assert reader.history(1)
    assert [(one.job, one.report) for one in reader.jobs()] == [("job", {"open_changes": 1})]
    job.give_back(lease)


def test_an_operator_asks_for_a_replay_and_the_job_notes_the_outcomes(registry_of: dict[str, Registry]) -> None:
    reader, job, operator = (registry_of[role] for role in ("reader", "job", "operator"))
    first, second = LetterPosition("star", 0, 5, 1), LetterPosition("star", 0, 17, 1)
    withdrawn = operator.replays.ask([first], who="op", why="by mistake")
    assert operator.replays.withdraw(withdrawn)
    number = operator.replays.ask([second, first], who="op")
    lease = job.take_lease("job", "here", 4, take_over=False, expires_after=60)
    assert job.replays.next_letters(1) == WaitingLetters(number, (first,))
    job.replays.note(lease, number, [LetterOutcome(first, "applied")])
    job.replays.note(lease, number, [LetterOutcome(first, "superseded")])  # a second outcome changes nothing
    assert [(one.number, one.letters, one.ended) for one in reader.replays.waiting()] == [(number, 2, 1)]
    assert job.replays.next_letters(5) == WaitingLetters(number, (second,))
    job.replays.note(lease, number, [LetterOutcome(second, "refused", "no int")])
    found = reader.replays.find(number)
    assert found is not None
    assert (found.state, found.ended) == ("done", 2)
    assert reader.replays.outcomes(number) == (
        LetterOutcome(first, "applied"),
        LetterOutcome(second, "refused", "no int"),
    )
    assert not operator.replays.withdraw(number)
    assert (job.replays.next_letters(5), reader.replays.waiting(), reader.replays.find(99)) == (None, (), None)


def test_a_run_that_lost_its_lease_notes_no_outcome(registry_of: dict[str, Registry]) -> None:
    job, place = registry_of["job"], LetterPosition("star", 0, 5, 1)
    number = job.replays.ask([place], who="op")
    lost = job.take_lease("job", "here", 4, take_over=False, expires_after=60)
    job.take_lease("job", "there", 4, take_over=True, expires_after=60)
    with pytest.raises(LeaseLost):
        job.replays.note(lost, number, [LetterOutcome(place, "applied")])
    assert job.replays.outcomes(number) == ()


DENIED = [
    ("reader", "INSERT INTO replay_requests (who) VALUES ('x')"),
    ("operator", "UPDATE replay_letters SET outcome = 'applied'"),
    *((role, "DELETE FROM replay_requests") for role in ROLES),
    ("reader", "UPDATE dead_letters SET outcome = NULL"),
    ("operator", "DELETE FROM dead_letters"),
    ("reader", "UPDATE products SET paused = true"),
    ("reader", "INSERT INTO leases (job) VALUES ('x')"),
    ("reader", "SELECT edit_version()"),
    ("reader", "DELETE FROM walk_progress"),
    ("job", "UPDATE entities SET topic = 'x'"),
    ("job", "INSERT INTO assignments VALUES ('user', 5, '{email}', 'planned')"),
    ("job", "INSERT INTO waiting_products VALUES ('x', 'x', 'user', '{}', 1)"),
    ("job", "UPDATE work SET paused = false"),
    ("job", "INSERT INTO slots VALUES (6)"),
    ("job", "UPDATE epochs SET epoch = 9"),
    ("operator", "UPDATE leases SET owner = NULL"),
    ("operator", "INSERT INTO epochs VALUES ('t', 'x', 0, 0, 9)"),
    ("operator", "DELETE FROM walk_progress"),
    ("job", "DELETE FROM landings"),
    ("reader", "INSERT INTO landings VALUES ('x', 'x', 'x', 'x')"),
    ("lander", "UPDATE products SET paused = true"),
    ("lander", "INSERT INTO leases (job) VALUES ('x')"),
    *((role, "UPDATE history SET who = 'nobody'") for role in ROLES),
    *((role, "DELETE FROM history") for role in ROLES),
    *((role, "DELETE FROM product_versions") for role in ROLES),
    *((role, "ALTER TABLE history DISABLE TRIGGER ALL") for role in ROLES),
    *((role, "DROP TRIGGER kept ON history") for role in ROLES),
    *((role, "CREATE TABLE mine (id int)") for role in ROLES),
    *((role, "TRUNCATE products CASCADE") for role in ROLES),
]


def test_a_role_may_not_do_the_work_of_others(roles: None, psql: Engine, schema: str) -> None:
    for role, statement in DENIED:
        with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
            run(psql, f"{schema}_{role}", statement)


def test_nobody_writes_the_history_by_hand(roles: None, psql: Engine, schema: str) -> None:
    forged = "INSERT INTO history (version, at, who, entry, operation) VALUES (1, now(), 'x', 'work', 'update')"
    for role in ("job", "operator"):
        with pytest.raises(IntegrityError, match="the triggers of edits write it"):
            run(psql, f"{schema}_{role}", forged)


def test_a_reader_is_refused_with_the_words_of_the_database(registry_of: dict[str, Registry]) -> None:
    with pytest.raises(RegistryError, match="permission denied"):
        registry_of["reader"].operate(Signature("me", "x"), operations.pause, None, paused=True)


def test_a_lander_notes_and_removes_its_landings(registry_of: dict[str, Registry]) -> None:
    lander, reader = registry_of["lander"].landings, registry_of["reader"].landings
    for place in ("table profile at one:5432/db", "table profile at two:5432/db"):
        lander.note("f00", product="profile", topic="profile", place=place)
    (known,) = reader.all()
    assert known[:4] == ("f00", "profile", "profile", "table profile at two:5432/db")
    assert known.made_at < known.seen_at
    assert [lander.remove("f00"), lander.remove("f00")] == [True, False]
    assert reader.all() == ()
