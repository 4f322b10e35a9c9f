"""Jobs in this process, on embedded parts and a Spark session that all of them share; without Spark for tests with the marker
`plain`. Each scene has topics, a table, a registry schema, a job name and a checkpoint of its own."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.replays import PARTITION, ended_replays, replay_key
from processor.engine.rounds.events import no_report
from processor.engine.rounds.trial import Trial
from processor.environment.embedded import Addresses, embedded_parts
from processor.environment.programs.downloads import spark_kafka_jars
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.job.run.job import Job
from processor.job.run.open_job import RunRequest, open_job
from processor.job.run.run_job import run_job, run_replays
from processor.language.definitions.load import load
from processor.values.dead_letters import read_dead_letters, rejected_record
from processor.values.record import Message, Record
from registry.repository import Registry
from statestore.keys import Key
from tests.integration.job.plain_engine import plain_engine
from tests.integration.job.profile_definitions import profile_definitions
from tests.integration.job.scene_records import Line, bytes_of, gone, last_documents, star, user

NAMES = count()
KEYS = {"user": ("id",), "star": ("who", "repo")}


@dataclass(kw_only=True)
class Scene:
    """A job's surroundings. `plan`: of the registry before the last start, or after its end. `lines`: what was produced so far,
    in order. `plain`: its jobs run without Spark, and `positions` is their checkpoint."""

    settings: Settings
    plan: Plan
    registry: Registry
    lines: list[Record] = field(default_factory=list)
    plain: bool = False
    positions: dict[Partition, int] = field(default_factory=dict)

    def topic(self, entity: str) -> str:
        return self.plan.entities[entity].entity.topic

    def admin(self) -> Admin:
        return Admin(self.settings.bootstrap_servers, {})

    def produce(self, *lines: Line, partition: int | None = None) -> None:
        """Produces records, each key to a partition of its own choice, or all to one."""
        outbox = KafkaOutbox(self.settings.bootstrap_servers, {})
        for entity, key, value in lines:
            key_bytes, value_bytes = bytes_of(key), bytes_of(value)
            where = crc32(key_bytes or b"") % self.settings.partitions if partition is None else partition
            topic = self.topic(entity)
            offset = sum((r.topic, r.partition) == (topic, where) for r in self.lines)
            self.lines.append(Record(topic=topic, partition=where, offset=offset, key=key_bytes, value=value_bytes))
            outbox.produce(Message(topic=topic, key=key_bytes, value=value_bytes, headers=()), where, 0)
        outbox.flush()

    @contextmanager
    def opened(
        self,
        *,
        owner: str = "one",
        take_over: bool = False,
        adopt: bool = False,
        load: bool = False,
        report: Any = None,
        **changes: Any,
    ) -> Iterator[Job]:
        self.plan = plan_of(self.registry.snapshot())
        changes |= {"checkpoint": ""} if self.plain else {}
        with plain_engine(self.positions) if self.plain else nullcontext():
            request = RunRequest(
                settings=replace(self.settings, **changes),
                plan=self.plan,
                registry=self.registry,
                owner=owner,
                take_over=take_over,
                adopt=adopt,
                load=load,
                jars=[] if self.plain else sorted(spark_kafka_jars().glob("*.jar")),
                report=report or no_report,
            )
            job = open_job(request)
            try:
                yield job
            finally:
                job.end()
                job.driver.store.close()
                self.plan = plan_of(self.registry.snapshot())

    def run(self, **changes: Any) -> SimpleNamespace:
        """Runs the job until all is worked off: what it counted, and the tallies of its batches."""
        batches: list[Mapping[str, int]] = []
        with self.opened(
            report=lambda event: batches.append(event.fields) if event.what == "batch" else None, **changes
        ) as job:
            run_job(job, once=True)
        return SimpleNamespace(tally=job.driver.tally, batches=batches, published=job.driver.tally["published"])

    def widen(self) -> None:
        """The operator's next definitions: a star's note may be anything."""
        definitions = load(profile_definitions(self.settings.job, note="json"))
        self.registry.apply(requirements_of(definitions), who="a test", why="notes are numbers, too")
        self.plan = plan_of(self.registry.snapshot())

    def add(self, product: str, **more: Any) -> None:
        """The operator's next definitions: one more product, or other content of one; of users, if `more` has no root."""
        texts = profile_definitions(self.settings.job)
        more = {"product": product, "topic": f"{self.settings.job}.{product}", "root": "user", **more}
        definitions = load(texts | {f"products/{product}.yaml": json.dumps(more)})
        self.registry.apply(requirements_of(definitions), who="a test", why="a new product")
        self.plan = plan_of(self.registry.snapshot())

    def add_entity(
        self, name: str, columns: dict[str, str], product: str, embed: Any, *, has_topic: bool = True, **more: Any
    ) -> None:
        """The operator's next definitions: one more entity with the key `id`, and a product of users over it. `more`: of the
        product."""
        texts = profile_definitions(self.settings.job)
        entities = json.loads(texts["entities.yaml"])
        entities[name] = {"topic": f"{self.settings.job}.{name}", "key": ["id"], "columns": columns}
        topic = f"{self.settings.job}.{product}"
        content = {"product": product, "topic": topic, "root": "user", "fields": ["id"], "embed": embed, **more}
        definitions = load({"entities.yaml": json.dumps(entities), f"{product}.yaml": json.dumps(content)})
        if has_topic:
            self.make_topic(name)
        self.registry.apply(requirements_of(definitions), who="a test", why="a new table")
        self.plan = plan_of(self.registry.snapshot())

    def make_topic(self, entity: str) -> None:
        """Makes the topic of an entity that `add_entity` adds."""
        self.admin().ensure([f"{self.settings.job}.{entity}"], partitions=self.settings.partitions, compacted=False)

    def last_values(self, topic: str) -> dict[str, Any]:
        """The last value of each key of a topic; None for a tombstone."""
        return {(r.key or b"").decode(): r.value for r in read_topic(self.settings.bootstrap_servers, {}, topic)}

    def replay(self, **changes: Any) -> list[tuple[int, str]]:
        """Replays all dead letters that wait: the offset of each, and how it ended."""
        records = read_topic(self.settings.bootstrap_servers, {}, self.settings.dead_letter_topic)
        with self.opened(**changes) as job:
            ended = ended_replays(job.driver.store.partition(PARTITION))
            waiting = [one for one in read_dead_letters(records) if replay_key(one.rejected.record) not in ended]
            return [(one.record.offset, one.outcome) for one in run_replays(job, waiting)]

    def published(self, product: str = "profile") -> list[Record]:
        """Everything published so far, partition by partition."""
        topic = self.plan.products[product].product.topic
        messages = read_topic(self.settings.bootstrap_servers, {}, topic)
        return sorted(messages, key=lambda message: (message.partition, message.offset))

    def documents(self, product: str = "profile") -> dict[str, Any]:
        """The last document of each root; deleted ones are left out. Sequences rise, or it fails."""
        return last_documents(self.published(product))

    def truth(self, product: str = "profile") -> dict[str, Any]:
        """What `try` makes of all that was produced."""
        topic = self.plan.products[product].product.topic
        trial = Trial(plan=self.plan, settings=self.settings)
        trial.batch(self.lines)
        messages = [m for m in trial.published.messages if m.topic == topic]
        return {m.key.decode(): json.loads(m.value) for m in messages if m.key and m.value is not None}

    def rejected(self) -> list[tuple[str, int, int, bytes | None, bytes | None, str]]:
        found = []
        for r in read_topic(self.settings.bootstrap_servers, {}, self.settings.dead_letter_topic):
            letter = rejected_record(Message(topic=r.topic, key=r.key, value=r.value, headers=r.headers))
            record = letter.record
            found.append((record.topic, record.partition, record.offset, record.key, record.value, letter.reason))
        return found

    def committed(self) -> list[int]:
        """The batches that the checkpoint says were committed."""
        return sorted(int(p.name) for p in Path(self.settings.checkpoint, "commits").glob("[0-9]*"))

    def uncommit_last(self) -> None:
        """Leaves the checkpoint as a driver's death in the last batch leaves it."""
        last = self.committed()[-1]
        for name in (f"{last}", f".{last}.crc"):
            with suppress(FileNotFoundError):
                Path(self.settings.checkpoint, "commits", name).unlink()

    def lose_checkpoint(self) -> None:
        self.positions.clear()
        if not self.plain:
            shutil.rmtree(self.settings.checkpoint)

    def stored(self, job: Job, entity: str, sk: str) -> Any:
        key = self.plan.entities[entity].key(sk)
        return job.driver.store.get([key]).get(Key(*key))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "plain: its jobs run in this process, without Spark")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each test of this folder that has a scene, except those without Spark, and those that bring a Spark of their own."""
    fixtures = getattr(item, "fixturenames", ())
    if "addresses" in fixtures and "other_python" not in fixtures and not is_plain(item):
        item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def addresses() -> Iterator[Addresses]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(name, "embedded")
    with embedded_parts(store="dynamodb") as started:
        yield started
        if (session := SparkSession.getActiveSession()) is not None:
            session.stop()


def is_plain(node: pytest.Item | pytest.Collector) -> bool:
    return node.get_closest_marker("plain") is not None


@pytest.fixture(scope="module")
def new_scene(
    request: pytest.FixtureRequest, addresses: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def make(**changes: Any) -> Scene:
        name = f"scene{next(NAMES)}_{os.getpid()}"
        scene = _scene(name, addresses, tmp_path_factory.mktemp(name) / "checkpoint", changes)
        scene.plain = is_plain(request.node)
        made.append(scene)
        return scene

    yield make
    for scene in made:
        scene.registry.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, new_scene: Callable[..., Scene]) -> Scene:
    made = new_scene()
    made.plain = is_plain(request.node)
    return made


@pytest.fixture(scope="session")
def rows() -> SimpleNamespace:
    """The functions of this file that make records: pytest imports no test file by name."""
    return SimpleNamespace(user=user, star=star, gone=gone)


def _scene(name: str, addresses: Addresses, checkpoint: Path, changes: Mapping[str, Any]) -> Scene:
    settings = Settings(
        job=name,
        wait_seconds=0.2,
        settle_seconds=0.2,
        table=name,
        slots=3,
        endpoint=addresses.endpoints["dynamodb"],
        region="us-east-1",
        registry=addresses.registry_url,
        registry_schema=name,
        bootstrap_servers=addresses.bootstrap_servers,
        checkpoint=str(checkpoint),
        dead_letter_topic=f"{name}.rejects",
        lanes=2,
        partitions=2,
        threads=4,
    )
    settings = replace(settings, **changes)
    registry = open_registry(settings)
    registry.migrate(settings.slots)
    registry.apply(requirements_of(load(profile_definitions(name))), who="a test", why="")
    scene = Scene(settings=settings, plan=plan_of(registry.snapshot()), registry=registry)
    scene.admin().ensure(map(scene.topic, KEYS), partitions=settings.partitions, compacted=False)
    return scene
