"""A job that moves between DynamoDB and Postgres: it continues with the copy as if nothing had happened."""

import os
import pty
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from processor.engine.protocol.identity import replace_identity, unfinished
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings, setting_flags
from processor.environment.stores.kinds import open_store
from processor.errors import Fenced, OwnedByAnother, StatestoreError
from processor.tools.operate.registry import copy_state
from registry.errors import LeaseHeld
from registry.model import Lease
from statestore.copy_items import CopyCounts, CopyStep
from statestore.keys import Key
from statestore.store import Terminal, Write
from tests.contract.postgres_servers import execute

Scene = Any  # conftest's
pytestmark = pytest.mark.plain


def copy(scene: Scene, store: str, **changes: Any) -> CopyCounts:
    """Copies the state of the scene's job into the same table of another store, which the scene uses from then on."""
    target = replace(scene.settings, store=store, **changes)
    counts = copy_state(scene.settings, target, scene.registry, owner="a test", report=lambda _: None)
    scene.settings = target
    return counts


def sequences(scene: Scene) -> dict[str, list[int]]:
    """The sequences of each root, in the order of the topic."""
    found = defaultdict(list)
    for message in scene.published():
        found[message.key.decode()].append(int(dict(message.headers)["statestore.sequence"]))
    return dict(found)


def put(settings: Settings, write: Write) -> None:
    store = open_store(settings)
    store.create(settings.slots)
    store.write(write)
    store.close()


@pytest.fixture(scope="module")
def started(new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Scene:
    """A job on DynamoDB that has published three documents, and stopped."""
    scene = new_scene()
    names = ("ada", "bob", "cyd")
    scene.produce(*(rows.user(n, name) for n, name in enumerate(names)))
    scene.produce(*(rows.star(name, f"repo{n}") for name in names for n in range(4)))
    scene.run()
    return scene


@pytest.mark.rest
def test_a_copy_is_refused_while_a_job_lives(started: Scene) -> None:
    with started.opened(), pytest.raises(LeaseHeld, match="runs already"):
        copy(started, "postgres")
    assert started.registry.binding().table == started.settings.table


def test_a_copy_onto_a_table_of_something_else_is_refused(started: Scene) -> None:
    other = f"{started.settings.table}_other"
    put(replace(started.settings, store="postgres", table=other), Write(Key("TABLE#user", "1"), {"_f": 1}))
    with pytest.raises(OwnedByAnother, match=f"postgres:{other} is foreign: it holds items of something else"):
        copy(started, "postgres", table=other)


def test_a_copy_onto_the_same_table_is_refused(started: Scene) -> None:
    with pytest.raises(StatestoreError, match="Give another table name"):
        copy(started, "dynamodb", region="us-west-2")


def test_a_copy_before_the_first_run_is_refused(new_scene: Callable[..., Scene]) -> None:
    with pytest.raises(StatestoreError, match="no job has run with this registry: there is nothing to copy"):
        copy(new_scene(), "postgres")


def test_a_copy_that_loses_the_lease_ends_without_effect_on_the_registry(started: Scene) -> None:
    settings, registry = started.settings, started.registry
    taken: list[Lease] = []

    def take_over(_: CopyStep) -> None:
        taken.append(registry.take_lease(settings.job, "another", 2, take_over=True, expires_after=60))

    target = replace(settings, store="postgres", table=f"{settings.table}_lost")
    with pytest.raises(Fenced, match="lost its lease; another job took over"):
        copy_state(settings, target, registry, owner="a test", report=take_over)
    registry.give_back(taken[-1])
    assert registry.binding().table == settings.table


def test_a_copy_that_broke_off_is_no_table_for_a_job_and_is_repeated(started: Scene) -> None:
    there = replace(started.settings, store="postgres")
    put(there, replace_identity(unfinished(started.registry.binding().identity)))
    put(there, Write(Key("TABLE#user", "of the first try"), {"_f": 1}))
    for adopt in (False, True):
        with (
            pytest.raises(OwnedByAnother, match=r"into it is not finished.* or run with --store dynamodb --table"),
            started.opened(store="postgres", adopt=adopt),
        ):
            pass
    assert copy(started, "postgres").deleted == 1


@pytest.mark.rest
def test_the_job_goes_on_with_the_copy_and_back_without_a_gap_or_a_repeat(
    started: Scene, rows: SimpleNamespace
) -> None:
    scene = started
    if scene.settings.store == "dynamodb":  # where this test runs alone
        copy(scene, "postgres")
    roots = scene.documents().keys()
    for turn, back in enumerate(("dynamodb", "postgres", "dynamodb")):
        before, store = sequences(scene), scene.settings.store
        assert scene.run().published == 0, "no document is published again"
        with pytest.raises(OwnedByAnother, match=f"is foreign: it is a copy of .*Run with --store {store} --table"):
            scene.run(store=back)
        scene.produce(rows.star("ada", f"later{turn}"), rows.gone(rows.star("bob", f"repo{turn}")))
        assert scene.run().published == 2
        after = sequences(scene)
        assert {root: len(after[root]) - len(before[root]) for root in roots} == dict(
            zip(roots, (1, 1, 0), strict=True)
        )
        assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in after.values())
        assert scene.documents() == scene.truth()
        counts = copy(scene, back)
        assert counts.equal == counts.read
        assert scene.registry.binding().table == scene.settings.place


@pytest.mark.rest
def test_a_terminal_shows_a_bar_for_the_copy_and_for_the_comparison_and_a_file_shows_lines(started: Scene) -> None:
    screen, terminal = pty.openpty()
    give_copy(started, terminal)
    os.close(terminal)
    shown = os.read(screen, 1_000_000).decode().removesuffix("\r\n").split("\r\n")
    bars = [line.rpartition("\r")[2].rstrip() for line in shown]
    for phase, bar in zip(("copy", "compare"), bars, strict=True):
        assert re.fullmatch(rf"{phase} \[#{{20,}}\] ([0-9]+) of \1 items, 100 %, [0-9,]+/s, 0:00:00 left", bar)
    lines = give_copy(started, subprocess.PIPE).splitlines()
    for phase, line in zip(("copy", "compare"), lines, strict=True):
        assert re.fullmatch(rf"{phase}: ([0-9]+) of \1 items, 100 %, [0-9,]+/s, 0:00:00 left", line)


def give_copy(scene: Scene, stderr: int) -> str:
    """Gives the verb in a process of its own, into the other store. Returns its stderr if that is a pipe."""
    stores = {"dynamodb": "postgres", "postgres": "dynamodb"}
    source, target = scene.settings.store, stores[scene.settings.store]
    code = "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "copy", "--from", source, "--to", target],
        env=os.environ | {f"STATESTORE_{n.upper()}": str(getattr(scene.settings, n)) for n, _ in setting_flags()},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=True,
    )
    former, scene.settings = scene.settings.place, replace(scene.settings, store=target)
    assert f"{scene.settings.place} holds the state of {former}: " in done.stdout
    return done.stderr or ""


def test_a_copy_needs_the_rights_that_the_page_names_and_an_error_names_those_that_lack(started: Scene) -> None:
    if started.settings.store != "dynamodb":  # the test before left it in the other store
        copy(started, "dynamodb")
    settings, administrator, table = started.settings, started.settings.registry, f"{started.settings.table}_owned"
    owner, job = f"{table}_owner", f"{table}_job"
    started.registry.create_roles()
    for role in (owner, job):
        execute(administrator, f"CREATE ROLE {role} LOGIN PASSWORD 'word'")
        execute(administrator, f"GRANT {settings.registry_schema}_job TO {role}")
    there = replace(settings, store="postgres", table=table)
    with pytest.raises(Terminal, match=f'give the statement CREATE SCHEMA "state_{table}" AUTHORIZATION "{owner}"'):
        copy_as(owner, settings, there)
    execute(administrator, f"CREATE SCHEMA state_{table} AUTHORIZATION {owner}")
    assert copy_as(owner, settings, there).equal > 0

    with pytest.raises(Terminal, match=f"permission denied for schema state_{table}: grant this user the schema"):
        copy_as(job, there, settings)
    execute(administrator, f"GRANT USAGE ON SCHEMA state_{table} TO {job}")
    rights = f"ALL TABLES IN SCHEMA state_{table}"
    execute(administrator, f"GRANT SELECT, INSERT, UPDATE, DELETE ON {rights} TO {job}")
    assert copy_as(job, there, settings).equal > 0
    assert copy_as(job, settings, there).equal > 0
    started.settings = there


def copy_as(role: str, source: Settings, target: Settings) -> CopyCounts:
    """Copies with the rights of a role of Postgres on the registry and on the tables."""
    where = urlsplit(source.registry)
    address = urlunsplit(where._replace(netloc=f"{role}:word@{where.netloc.rpartition('@')[2]}"))
    source, target = replace(source, registry=address), replace(target, registry=address)
    with open_registry(source) as registry:
        return copy_state(source, target, registry, owner="a test", report=lambda _: None)
