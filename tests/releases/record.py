"""Record what this release leaves behind: its table, registry, checkpoint and topics, as files under tests/data/releases.

    python -m tests.releases.record

Run it once for each release, before the version changes. The next release must read these files, and write items of the same
shape (tests/integration/job/test_releases.py, tests/unit/releases). The job runs on embedded parts: a first run works off all its
records; a second one stops after its first batch, so it leaves open changes and fan-outs.
"""

import json
import shutil
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks.job import start_parts
from processor.cli.printing.output import write_published
from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.replays import drop
from processor.engine.rounds.events import JobEvent
from processor.environment.programs.downloads import spark_kafka_jars
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings, statestore_version
from processor.environment.stores.kinds import open_store
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.job.run.feed import feed_of
from processor.job.run.job import Job
from processor.job.run.open_job import RunRequest, open_job
from processor.job.run.run_job import run_job
from processor.language.definitions.load import load
from processor.values.record import Message, Record
from registry.repository import Registry
from registry.tables import metadata
from tests.integration.job.plain_client import plain_client
from tests.releases.release import DEFINITIONS, RELEASES, SETTINGS, first_records, later_records


def record() -> None:
    """Runs the job, and writes the files."""
    folder = RELEASES / statestore_version()
    with start_parts("local", batch=100) as (given, _):
        addresses = {name: getattr(given, name) for name in ("bootstrap_servers", "registry", "endpoint", "region")}
        settings = replace(SETTINGS, **addresses, checkpoint=given.checkpoint)
        with open_registry(settings) as registry:
            registry.migrate(settings.slots)
            registry.apply(requirements_of(load(DEFINITIONS)), who="an author", why="the first definitions")
            plan = plan_of(registry.snapshot())
            feed_of(settings, plan, list(first_records())).produce()
            _run(settings, registry, once=True)
            outbox = KafkaOutbox(settings.bootstrap_servers, {})
            for one in later_records():
                outbox.produce(Message(one.topic, one.key, one.value, ()), one.partition, 0)
            outbox.flush()
            _run(settings, registry, once=False)
            store = open_store(settings)
            letter = Record(topic="release.user", partition=0, offset=1, epoch=1, key=b"", value=b"")
            at = datetime(2026, 11, 22, tzinfo=UTC)
            store.write(drop(letter, who="an operator", why="given up", at=at))
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _write_items(settings, folder)
            _write_registry(registry, folder)
            store.close()
        _write_topics(settings, folder, [entity.entity.topic for entity in plan.entities.values()], "topics.jsonl")
        _write_topics(settings, folder, [one.product.topic for one in plan.products.values()], "documents.jsonl")
        shutil.copytree(settings.checkpoint, folder / "checkpoint", ignore=shutil.ignore_patterns(".*"))


def _run(settings: Settings, registry: Registry, *, once: bool) -> None:
    jobs: list[Job] = []

    def report(event: JobEvent) -> None:
        if event.what == "batch" and not once:
            jobs[0].stopping.set()

    jars = sorted(spark_kafka_jars().glob("*.jar"))
    plan = plan_of(registry.snapshot())
    jobs.append(
        open_job(RunRequest(settings=settings, plan=plan, registry=registry, owner="one", jars=jars, report=report))
    )
    run_job(jobs[0], once=once)


def _write_items(settings: Settings, folder: Path) -> None:
    pages = plain_client(settings).get_paginator("scan").paginate(TableName=settings.table)
    items = [item for page in pages for item in page["Items"]]
    items.sort(key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
    lines = (json.dumps(item, default=lambda raw: b64encode(raw).decode(), ensure_ascii=False) for item in items)
    (folder / "items.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_registry(registry: Registry, folder: Path) -> None:
    """The rows of all tables, without what names a machine."""
    with registry._database.reading() as connection:
        found: dict[str, Any] = {
            table.name: connection.scalar(text(f"SELECT coalesce(json_agg(t), '[]') FROM {table.name} AS t"))
            for table in metadata.sorted_tables
        }
        revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    for lease in found["leases"]:
        lease.update(report=None, reported_at=None)
    lines = [f'"{name}": [\n{_rows(rows)}]' for name, rows in found.items() if rows]
    head = f'"revision": {json.dumps(revision)}'
    (folder / "registry.json").write_text("{\n" + ",\n".join([head, *lines]) + "\n}\n", encoding="utf-8")


def _rows(rows: list[Any]) -> str:
    return ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _write_topics(settings: Settings, folder: Path, topics: list[str], file: str) -> None:
    found = [one for topic in sorted(topics) for one in read_topic(settings.bootstrap_servers, {}, topic)]
    found.sort(key=lambda one: (one.topic, one.partition, one.offset))
    write_published(found, str(folder / file))


if __name__ == "__main__":
    record()
