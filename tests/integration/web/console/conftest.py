"""A console over a real registry and a real table in Postgres, as its operator, as a reader, and as nobody sees it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from time import time
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, make_url, text
from starlette.testclient import TestClient

from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.identity import write_identity
from processor.engine.protocol.replays import kept_letter, letter_position, replay_key
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.job.run.dead_letters import LetterFate, dead_letter_outcomes
from processor.language.definitions.load import load
from processor.tools.web.console.app import READER, SCREENS, OwnUser, PersonRules, console_app, console_parts
from processor.tools.web.console.letters import read_place
from processor.tools.web.console.screen import LetterPage, SlotWidening
from processor.tools.web.server import Guard, GuardRules
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record, Rejected
from registry.repository import Registry
from registry.repository.connection import ROLES
from statestore.store import Store
from tests.unit.cli.job_state import STATE

ENTITIES = {
    "user": {"topic": "user", "key": ["id"], "columns": {"id": "int", "name": "string"}},
    "star": {"topic": "star", "key": ["who", "repo"], "columns": {"who": "string", "repo": "string", "note": "string"}},
}
PROFILE = {
    "product": "profile",
    "topic": "profile",
    "root": "user",
    "fields": ["id", "name"],
    "embed": {"stars": {"many": "star", "on": {"who": "name"}, "fields": ["repo", "note"]}},
}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202egnp.exe\x1b[2J"
LETTER = "star/0/7/1"
JOB = "statestore"
LOCAL = "http://127.0.0.1"


def definitions(**more: Any) -> Any:
    return load({"entities.yaml": json.dumps(ENTITIES), "products/profile.yaml": json.dumps(PROFILE | more)})


@dataclass(kw_only=True)
class ConsoleScene:
    """A console. `kept`: its dead letters; `open`: what closes at the end."""

    settings: Settings
    registry: Registry
    store: Store
    widening: SlotWidening
    kept: list[DeadLetter] = field(default_factory=list)
    open: ExitStack = field(default_factory=ExitStack)

    def letters(self) -> list[LetterFate]:
        notes = self.store.get([replay_key(one.rejected.record) for one in self.kept])
        return dead_letter_outcomes(self.kept, notes.values())

    def page(self, before: str) -> LetterPage:
        """A page of three messages of a topic with six: the kept letters are the last ones, and the first page before them."""
        read_place(before)
        return LetterPage(self.letters(), messages=6, earlier="" if before else "0-3")

    def app(self, registry: Registry, people: PersonRules | None = None, **rules: Any) -> Guard:
        """The application over the registry as a role sees it. Of named people it takes the roles."""
        shared = None if people is None or isinstance(people, OwnUser) else registry.acting_as(READER)
        made = self.open.enter_context(console_parts(registry, self.settings, shared))
        parts = replace(made, letters=self.page, widening=self.widening)
        return console_app(parts, SCREENS, people or OwnUser("ada"), GuardRules(**rules))

    def browser(self, registry: Registry | None = None, name: str = "ada") -> "Browser":
        """A browser of this person."""
        return Browser(TestClient(self.app(registry or self.registry, OwnUser(name)), base_url=LOCAL))

    def applies(self, **more: Any) -> None:
        """Another operator applies the product with other content."""
        self.registry.apply(requirements_of(definitions(**more)), who="eve", why="meanwhile")


class Browser:
    """A person's browser, as far as a form needs it."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def page(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def data(self, path: str) -> Any:
        answer = self.client.get(f"/api{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send(self, path: str, page: str, status: int, **fields: Any) -> str:
        """Sends the form of the page, with these fields filled in. Follows to the next page where the edit is made."""
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page))
        answer = self.client.post(path, data=hidden | fields, follow_redirects=False)
        assert answer.status_code == status, answer.text
        return self.page(answer.headers["location"]) if status == 303 else answer.text


def at(path: str, **query: object) -> str:
    """An address."""
    return path + "?" + "&".join(f"{name}={quote(str(value))}" for name, value in query.items())


MOVE = at("/edit", edit="move", entity="star", slot=1, target=3)
PAGES = [
    "/",
    "/slots",
    at("/edit", edit="move", entity="star", slot=1),
    MOVE,
    at("/edit", edit="add-slots", number=6),
    at("/edit", edit="pause", product="profile"),
    at("/edit", edit="republish", product="profile"),
    at("/edit", edit="remove", product="profile"),
    "/products",
    at("/products/product", product="profile"),
    "/documents",
    at("/documents", product="profile", key=1),
    at("/documents", product="profile", key=99),
    "/rows",
    at("/rows", entity="user", key=1),
    at("/rows", entity="user", key=99),
    "/letters",
    at("/letters", before="0-3"),
    at("/letters/group", topic="star", code="column-type", column="note"),
    at("/letters/group", topic="star", preview=1),
    at("/letters/request", of=1),
    at("/letters/letter", at=LETTER),
    "/history",
    at("/history/version", of=1),
    "/costs",
    at("/costs", without="profile"),
]
"""Every screen, with what it shows."""


@pytest.fixture
def console(registry: Registry, postgres_url: str, schema: str) -> Iterator[ConsoleScene]:
    """A registry with a product, a table with its rows and documents, and a dead letter."""
    settings = Settings(
        registry=postgres_url, registry_schema=schema, store="postgres", store_url=postgres_url, table=f"t_{schema}"
    )
    registry.apply(requirements_of(definitions()), who="eve", why="the first product")
    store, bound = open_store(settings), registry.binding()
    store.create(5)
    store.write(write_identity(bound.identity))
    registry.bind(replace(bound, job=JOB, table=settings.place))
    trial = Trial(plan=plan_of(registry.snapshot()), settings=settings, other_store=store)
    rows: list[tuple[str, dict[str, Any]]] = [
        ("user", {"id": 1, "name": "ada"}),
        ("user", {"id": 2, "name": EVIL}),
        ("star", {"who": "ada", "repo": "r"}),
    ]
    trial.batch([record_of(topic, n, value) for n, (topic, value) in enumerate(rows)])
    trial.finish()
    refused = Rejected(
        record=record_of("star", 7, {"who": "ada", "repo": "q", "note": [EVIL]}),
        reason="column 'note': expected string, found list",
        code="column-type",
        entity="star",
    )
    since = round(time()) - 3_600.0
    kept = [DeadLetter(rejected=refused, kept_since=since)]
    registry.letters.keep([kept_letter(refused, since)])
    registry.replays.withdraw(registry.replays.ask([letter_position(record_of("star", 6, {}))], who="eve", why="early"))
    widening = SlotWidening(settings)
    scene = ConsoleScene(settings=settings, registry=registry, store=store, widening=widening, kept=kept)
    with scene.open, closing(store):
        yield scene


@pytest.fixture
def registry_of(
    console: ConsoleScene, psql: Engine, postgres_url: str, schema: str
) -> Iterator[Callable[[str], Registry]]:
    """The registry as a role of the database sees it."""
    console.registry.create_roles()
    separator, made = "&" if "?" in postgres_url else "?", list[Registry]()

    def open_as(role: str) -> Registry:
        made.append(Registry(f"{postgres_url}{separator}options=-crole%3D{schema}_{role}", schema))
        return made[-1]

    yield open_as
    for one in made:
        one.close()
    with psql.begin() as connection:
        for role in ROLES:
            connection.execute(text(f"DROP OWNED BY {schema}_{role}; DROP ROLE {schema}_{role}"))


@pytest.fixture
def console_user(
    registry_of: Callable[[str], Registry], psql: Engine, postgres_url: str, schema: str
) -> Iterator[tuple[Registry, str]]:
    """The registry over the login of a console, which may act as a reader and as an operator, and may do nothing by itself. With
    the name of the login."""
    user, password = f"{schema}_console", "of-a-console"
    with psql.begin() as connection:
        connection.execute(text(f"CREATE ROLE {user} LOGIN NOINHERIT PASSWORD '{password}'"))
        connection.execute(text(f"GRANT {schema}_reader, {schema}_operator TO {user}"))
    url = make_url(postgres_url).set(username=user, password=password)
    with Registry(url.render_as_string(hide_password=False), schema) as made:
        yield made, user
    with psql.begin() as connection:
        connection.execute(text(f"DROP ROLE {user}"))


def record_of(topic: str, offset: int, row: dict[str, Any]) -> Record:
    """A record of a source topic."""
    value = json.dumps(row).encode()
    return Record(topic=topic, partition=0, offset=offset, epoch=1, timestamp=1_700_000_000_000, key=None, value=value)


@pytest.fixture
def run_state() -> dict[str, Any]:
    """The report of a run over records of 2015, one of whose products stopped."""
    return STATE | {
        "job": JOB,
        "at": 1_767_323_045.0,
        "topics": {"star": {"records": 1_234, "seconds": 347_000_000.0}},
        "stopped_products": {"profile": "a column is missing"},
        "last_batch": None,
        "backlog": 3,
        "counts": {"read": 5, "half units UpdateItem": 9, "request UpdateItem": 4},
        "last_hour": {"seconds": 1_800.0, "counts": {"messages of profile": 900, "half units UpdateItem": 2_000_000}},
        "last_day": {
            "seconds": 7_200.0,
            "counts": {
                "messages of profile": 900,
                "messages of other": 100,
                "half units UpdateItem": 4_000_000,
                "applied in star": 7_200_000,
            },
        },
        "samples": [[1_767_322_900, 4.0, 1.0, 0], [1_767_322_960, 12.0, 2.0, 7], [1_767_323_020, 5.0, 0.0, 3]],
    }
