"""A broker, a schema in Postgres, an OpenSearch, and a product's topic whose messages tests write."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event
from time import sleep
from typing import Any, ClassVar
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from processor.engine.rounds.events import JobEvent, Troubles
from processor.environment.programs.servers import start_kafka, start_opensearch
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import GroupReader, read_topic
from processor.job.landing.landing import Landing, group_of
from processor.job.landing.postgres import PostgresTarget
from processor.job.landing.search import SearchClient, SearchTarget
from processor.job.landing.sinks import POSTGRES, SEARCH, SINKS
from processor.job.landing.target import LandedTopic, LandingComparison, Opened, Target, compare_landing, read_messages
from processor.values.record import MAX_MESSAGE_BYTES

PRODUCT = "person"
PARTITIONS = 2
MAPPING = {"dynamic": False, "properties": {"n": {"type": "long"}, "name": {"type": "text"}}}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker."""
    part = start_kafka(tmp_path_factory.mktemp("kafka"))
    yield part.endpoint
    part.stop()


@dataclass
class LandingScene:
    """A topic of a product, and a table for its documents. `version`: of the product; `events`: those of the landings."""

    broker: str
    url: str
    topic: LandedTopic
    version: int = 3
    events: list[JobEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connect()
        self.sequences: dict[str, int] = {}
        self.last: dict[str, Any] = {}

    def connect(self) -> None:
        """A new producer: the one before knows only the topic before."""
        self._producer = Producer({"bootstrap.servers": self.broker, "message.max.bytes": MAX_MESSAGE_BYTES})

    def publish(
        self,
        id_: Any,
        document: Any,
        *,
        sequence: int | None = None,
        partition: int | None = None,
        product: str = PRODUCT,
        forged: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Writes a message as a job does. `document`: None for a tombstone. Without `sequence` the next one of this root.
        `forged`: another `key`, another `value`, and other texts of headers."""
        key = json.dumps({"id": id_}, separators=(",", ":"))
        given = self.sequences.get(key, 0) + 1 if sequence is None else sequence
        if given > self.sequences.get(key, 0) and not forged:
            self.sequences[key], self.last[key] = given, document
        headers = {
            "product": product,
            "product_version": str(self.version),
            "sequence": str(given),
            "registry_version": "1",
            "batch": "0",
        }
        made = {
            "key": key.encode(),
            "value": None if document is None else json.dumps(document).encode(),
            **{name: text.encode() for name, text in headers.items()},
            **(forged or {}),
        }
        self._producer.produce(
            self.topic.name,
            key=made.pop("key"),
            value=made.pop("value"),
            partition=sum(key.encode()) % PARTITIONS if partition is None else partition,
            headers=[(f"statestore.{name}", text) for name, text in made.items()],
        )
        self._producer.flush()

    def target(self, indexes: Mapping[str, str] | None = None) -> Target:
        return PostgresTarget(self.url, PRODUCT, indexes or {})

    def landing(
        self, target: Target, *, once: bool = True, stopping: Event | None = None, opened: Opened | None = None
    ) -> Landing:
        """A process of the landing. `opened`: as its target was opened, by default for this topic."""
        opened = opened or target.open(self.topic)
        admin, topic = Admin(self.broker, {}), self.topic
        return Landing(
            topic=topic,
            target=target,
            look=lambda: topic_now(admin, topic),
            ends=lambda: admin.stable_ends(topic.name),
            join=lambda offsets: GroupReader(self.broker, {}, topic.name, group_of(PRODUCT, opened.id), offsets),
            note=lambda: None,
            troubles=Troubles(self.events.append),
            report=self.events.append,
            stopping=stopping or Event(),
            goal=admin.stable_ends(topic.name),
            once=once,
            earlier=opened.earlier,
        )

    def land(self, indexes: Mapping[str, str] | None = None) -> Landing:
        """Lands what the topic holds now."""
        with closing(self.target(indexes)) as target:
            landing = self.landing(target)
            landing.run()
        return landing

    refused: ClassVar[Any] = {"text": "nul \0"}
    """A document that this kind of sink refuses."""

    def tamper(self) -> None:
        """Somebody changes the document 0, deletes the document 1, and adds the document 9."""
        self.sql(f"update {PRODUCT} set document = '{{}}' where key = '{{\"id\": 0}}'")
        self.sql(f"delete from {PRODUCT} where key = '{{\"id\": 1}}'")
        self.sql(f"insert into {PRODUCT} select '{{\"id\": 9}}', document, 1, 1, now() from {PRODUCT} limit 1")

    def occupy(self) -> None:
        """Makes a place of this name, as no landing makes it."""
        self.sql(f"create table {PRODUCT} (a int)")

    def drop(self) -> None:
        """Removes the place."""
        self.sql(f"drop table {PRODUCT}")

    def everything(self) -> str:
        """All that the sink holds, also for itself."""
        own = (f"statestore_landing{name}" for name in ("", "_offset", "_deleted", "_refused"))
        return str([self.sql(f"select * from {table}") for table in (PRODUCT, *own)])

    def said(self, what: str) -> bool:
        """Whether a landing said this."""
        return any(event.what == what for event in self.events)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def table(self) -> dict[str, Any]:
        """Key -> document, as they are in the table."""
        rows = self.sql(f"select key, document from {PRODUCT}")
        return {json.dumps(key, separators=(",", ":")): document for key, document in rows}

    def compare(self) -> LandingComparison:
        """Compares the target with the topic."""
        with closing(self.target()) as target:
            target.check(self.topic)
            records = read_topic(self.broker, {}, self.topic.name)
            return compare_landing(target.moment(), read_messages(records, PRODUCT))

    def expected(self) -> dict[str, Any]:
        """Key -> document of the last message of each root, without tombstones."""
        return {key: document for key, document in self.last.items() if document is not None}


@dataclass
class SearchScene(LandingScene):
    """A topic of a product, and an index for its documents. `url`: of the server."""

    def target(self, indexes: Mapping[str, str] | None = None) -> Target:
        return SearchTarget(self.url, PRODUCT, self.version, MAPPING)

    def ask(self, method: str, path: str, value: Any = None) -> Any:
        """The answer of the server, whose status must be good."""
        with closing(SearchClient(self.url)) as client:
            return json.loads(client.send(method, path, value))

    def find(self, query: Any = None, index: str = PRODUCT) -> list[dict[str, Any]]:
        """The entries that a search finds now. `index`: an index, or an alias."""
        self.ask("POST", f"/{PRODUCT}-v*/_refresh")
        found = self.ask("POST", f"/{index}/_search", {"query": query or {"match_all": {}}, "size": 1_000})
        return [hit["_source"] for hit in found["hits"]["hits"]]

    refused: ClassVar[Any] = {"n": "no number"}

    def tamper(self) -> None:
        (zero,) = self.find({"term": {"n": 0}})
        ids = {n: sha256(f'{{"id":{n}}}'.encode()).hexdigest() for n in (0, 1, 9)}
        self.ask("PUT", f"/{PRODUCT}-v3/_doc/{ids[0]}", zero | {"n": 7})
        self.ask("DELETE", f"/{PRODUCT}-v3/_doc/{ids[1]}")
        extra = zero["statestore"] | {"key": '{"id":9}'}
        self.ask("PUT", f"/{PRODUCT}-v3/_doc/{ids[9]}", zero | {"statestore": extra})

    def occupy(self) -> None:
        self.ask("PUT", f"/{PRODUCT}-v3", {})

    def drop(self) -> None:
        self.ask("DELETE", f"/{PRODUCT}-v3")

    def everything(self) -> str:
        return str(self.find(index=f"{PRODUCT}-v3"))

    def table(self) -> dict[str, Any]:
        """Key -> document, as readers find them."""
        return {one["statestore"]["key"]: {k: v for k, v in one.items() if k != "statestore"} for one in self.find()}


@pytest.fixture
def scene(broker: str, postgres_url: str, schema: str) -> LandingScene:
    """A topic of two partitions without messages, and a schema without tables."""
    with psycopg.connect(str(postgres_url), autocommit=True) as connection:
        connection.execute(f"create schema {schema}".encode())
    separator = "&" if "?" in str(postgres_url) else "?"
    url = f"{postgres_url}{separator}options=-csearch_path%3D{schema}"
    return LandingScene(broker, url, make_topic(broker))


@pytest.fixture(scope="session")
def opensearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an OpenSearch."""
    part = start_opensearch(tmp_path_factory.mktemp("opensearch"))
    yield part.endpoint
    part.stop()


@pytest.fixture
def search(broker: str, opensearch: str) -> Iterator[SearchScene]:
    """A topic of two partitions without messages, and a server without indexes."""
    scene = SearchScene(broker, opensearch, make_topic(broker))
    yield scene
    scene.ask("DELETE", f"/{PRODUCT}*")


SCENES = {POSTGRES.name: "scene", SEARCH.name: pytest.param("search", marks=pytest.mark.rest)}
"""The scene of each kind of sink."""


@pytest.fixture(params=[SCENES[kind.name] for kind in SINKS])
def target_scene(request: pytest.FixtureRequest) -> LandingScene:
    """A topic without messages, and an empty target, of each kind of sink."""
    scene = request.getfixturevalue(request.param)
    assert isinstance(scene, LandingScene)
    return scene


def make_topic(broker: str) -> LandedTopic:
    """A topic without messages."""
    name = f"landing-{uuid4().hex[:8]}"
    admin = Admin(broker, {})
    admin.ensure([name], partitions=PARTITIONS, compacted=True)
    while not (found := admin.topics([name])):  # the broker may know it a moment later
        sleep(0.1)
    return LandedTopic(PRODUCT, name, found[name].id, admin.cluster())


def create_again(scene: LandingScene) -> None:
    """Deletes the topic of a scene, and creates it again; its sequences go on."""
    name, admin = scene.topic.name, Admin(scene.broker, {})
    client = AdminClient({"bootstrap.servers": scene.broker})
    client.delete_topics([name])[name].result()
    while admin.topics([name]):
        sleep(0.1)
    admin.ensure([name], partitions=PARTITIONS, compacted=True)
    while not (found := admin.topics([name])):
        sleep(0.1)
    scene.topic = scene.topic._replace(id=found[name].id)
    scene.last = {}
    scene.connect()


def topic_now(admin: Admin, topic: LandedTopic) -> LandedTopic | None:
    """The topic of this name as the broker has it now."""
    found = admin.topics([topic.name]).get(topic.name)
    return None if found is None else topic._replace(id=found.id)
