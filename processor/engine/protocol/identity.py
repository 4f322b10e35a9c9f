"""The identity that binds registry, table and checkpoint: a random id, made with the registry, and the name of the job.

    registry     the id, the job, and the place of the table: its name, `postgres:NAME` in Postgres (`registry.model.Binding`)
    table        IDENTITY, table: the id; in a copy that is not finished, another text; when DynamoDB made the table
    checkpoint   the file `statestore.identity`: the id

`check_binding` decides from these what does not belong together. Others read and write them. The table also keeps, for
each product, the highest sequence that its topic had before the product published there (`SEQUENCES`): the sequences of a
root go on rising when a new table takes the place of another, and when a product gets the topic of another one. The same
item names the product's partition of the ledger, and its number there: a registry that went back to an earlier moment may
give this number to another product.

The table also remembers the topics that the job publishes to, as they were when it published all documents of a product:

    TOPICS, <product>    topic, id, partitions; version: the product's

A topic that was deleted and created again lacks the documents that do not change. Only a new version of the product publishes
all of them, so the job notes the topic again with the next version.
"""

from collections.abc import Iterable
from typing import NamedTuple

from processor.engine.protocol.segments import PARTITIONS
from processor.environment.stores.kinds import kind_and_table
from processor.errors import OwnedByAnother
from registry.model import Binding
from statestore import keys
from statestore.keys import Key, progress_partition
from statestore.store import Absent, Item, Write
from statestore.writes import write_note

IDENTITY = Key(progress_partition("IDENTITY"), "table")
SEQUENCES = progress_partition("SEQUENCES")
IDENTITY_FILE = "statestore.identity"
"""The file of the checkpoint."""
TRACES = (progress_partition("RUNS"), progress_partition("OPEN"), *PARTITIONS)
"""The partitions in which a run leaves items."""
_UNFINISHED = "unfinished copy of "


def check_binding(
    registry: Binding,
    settings: Binding,
    *,
    table: str | None,
    used: bool = False,
    restored: bool = False,
    lost: str = "",
    checkpoint: str | None = None,
    path: str = "",
    adopt: bool = False,
) -> None:
    """Raises OwnedByAnother for the first part that does not belong to the registry; the message names the part, and the
    commands that mean to use it.

    Args:
        settings: the job and the place of the table that the settings name. `identity` does not count.
        table: the id in the table; empty for a table without one, None where there is no table.
        used: whether a table without an id holds the progress of runs.
        restored: whether the table got its id before it was made (`is_restored`).
        lost: what proves that the table lacks its last writes (`progress.lost_writes`); empty: nothing does.
        checkpoint: the id in the checkpoint; empty for a checkpoint without one, None where no stream has begun.
        path: of the checkpoint.
        adopt: the operator means to rename the job, to build the state again in an empty table, or to go on with a restored one.
    """
    if registry.job and registry.job != settings.job and not adopt:
        raise OwnedByAnother(
            f"the job {settings.job} is foreign: the registry's job is {registry.job}. Run with --job {registry.job}, or "
            f"rename the job with `statestore run --job {settings.job} --adopt`"
        )
    own = _flags(registry.table, settings.table)
    if table == unfinished(registry.identity):
        raise OwnedByAnother(
            f"the table {settings.table} is foreign: the copy of {registry.table} into it is not finished. "
            f"Give `statestore copy` again, or run with {own}"
        )
    if table and table != registry.identity:
        raise OwnedByAnother(
            f"the table {settings.table} is foreign: it belongs to another registry, whose slots mean other columns. Give that "
            f"registry (--registry, --registry-schema), or this registry's own table{_named(registry)}, or a new one"
        )
    elsewhere = bool(table) and registry.table not in ("", settings.table)
    if elsewhere and not adopt:
        raise OwnedByAnother(
            f"the table {settings.table} is foreign: it is a copy of {registry.table}, the table of the registry's job, as that "
            f"one was at an earlier moment. Run with {own}, or go on from that moment: `statestore run "
            "--adopt` with this --table and a new --checkpoint"
        )
    if restored and not adopt:
        raise OwnedByAnother(
            f"the table {settings.table} is foreign: it was restored, and is older than the registry and the checkpoint. "
            "Go on from that moment: `statestore run --adopt` with a new --checkpoint"
        )
    if lost and not adopt:
        raise OwnedByAnother(
            f"the table {settings.table} went back to an earlier moment: {lost}. A standby without the last writes took over, or "
            "a backup was restored, and the checkpoint counts records that the table lacks. Go on from that moment: "
            "`statestore run --adopt` with a new --checkpoint"
        )
    empty = not table
    if empty and used:
        raise OwnedByAnother(
            f"the table {settings.table} is foreign: it holds the progress of runs, but no identity. Give another --table"
        )
    if empty and registry.table and not adopt:
        state = "there is no such table" if table is None else "it is empty"
        cure = "They are lost: build" if registry.table == settings.table else f"Run with {own}, or build"
        raise OwnedByAnother(
            f"the table {settings.table} is foreign: {state}, but the registry's job has stored rows in {registry.table}. "
            f"{cure} the state again from the topics: `statestore run --adopt` with this --table and a new --checkpoint"
        )
    rebuilt = elsewhere or restored or bool(lost) or (empty and bool(registry.table))
    if checkpoint is not None and (checkpoint != registry.identity or rebuilt):
        raise OwnedByAnother(
            f"the checkpoint {path} is foreign: it counts records that are not in the table {settings.table}. Give the "
            "table's own --checkpoint, or a new directory: the job then reads all topics again, and publishes the "
            "documents that differ"
        )


def lost_registry(table: str, schema: str) -> tuple[str, str]:
    """What is wrong where a table has an identity, and the schema has no registry; and what to do about it."""
    what = f"the table {table} belongs to a registry, and there is none in the schema {schema}"
    cure = (
        "correct --registry or --registry-schema, or give a new --table. If the registry is lost, restore its backup; without "
        "one, stop every job and make it from the definitions and the table: `statestore rebuild-registry --registry-is-lost "
        f"--registry-schema {schema} --table {table} --definitions DIR`, then `statestore run` with a new --checkpoint"
    )
    return what, cure


def check_readable(registry: Binding, table_name: str, table: str | None) -> None:
    """Raises OwnedByAnother when the rows of a table are not rows of this registry."""
    if not table and table_name == registry.table:
        raise OwnedByAnother(
            f"the table {table_name} has lost its rows: `statestore run` names the way to build them again"
        )
    if table != registry.identity:
        raise OwnedByAnother(
            f"the table {table_name} is not the table of this registry{_named(registry)}: give that --table, or the "
            "registry of this table (--registry, --registry-schema)"
            if registry.table
            else "no job has run with this registry: start one with `statestore run`, or give the registry that a job runs with"
        )


def identity_in(item: Item | None) -> str:
    """The id that the table's item holds; empty without one."""
    return "" if item is None else str(item["id"])


def is_restored(item: Item | None, created: int | None) -> bool:
    """Whether the table's item says that the table was made at another time. `created`: when it was, None where it is unknown."""
    noted = None if item is None else item.get("created")
    return None not in (noted, created) and noted != created


def write_identity(identity: str, created: int | None = None) -> Write:
    """Puts the id into a table that has none. `created`: when the table was made, None where it is unknown."""
    return replace_identity(identity, created)._replace(when=Absent())


def replace_identity(identity: str, created: int | None = None) -> Write:
    """Puts the id into a table in place of another one."""
    return write_note(IDENTITY, {"id": identity} | ({} if created is None else {"created": created}))


def unfinished(identity: str) -> str:
    """The id of a table into which a copy of the registry's table is on its way."""
    return _UNFINISHED + identity


def read_sequences(items: Iterable[Item]) -> dict[tuple[str, str, str], int]:
    """(product, its partition of the ledger, its topic) -> the highest sequence that the topic had before the product published
    there. Releases before 0.2 did not note the topic."""
    return {(item["SK"], item["ledger"], item.get("topic", "")): item["above"] for item in items}


def ledgers_in(items: Iterable[Item]) -> set[str]:
    """The partitions of the ledger that products have used."""
    return {ledger for item in items for ledger in (item["ledger"], *item["former"])}


def write_sequence(product: str, above: int, topic: str, ledger: str, number: int, former: Iterable[str] = ()) -> Write:
    """Keeps the highest sequence of a product's topic. `ledger`, `number`: its place in the ledger; `former`: its partitions
    before, under other roots."""
    values = {"above": above, "topic": topic, "ledger": ledger, "number": number, "former": sorted(former)}
    return write_note(Key(SEQUENCES, product), values)


def other_number(items: Iterable[Item], product: str, ledger: str, number: int) -> str:
    """Why the table knows this place in the ledger as that of another product, or another number of this product in the same
    partition; empty where it does not. `items`: of `SEQUENCES`."""
    for item in items:
        same_place, same_product = item["number"] == number, item["SK"] == product
        if item["ledger"] == ledger and same_place != same_product:
            given = f"ledger number {item['number']} of {item['SK']}"
            return f"the table knows {given}, and the registry gives number {number} to {product}"
    return ""


def _flags(place: str, other: str) -> str:
    """The flags for the table at a place. `other`: the place that the flags must differ from."""
    (kind, name), (other_kind, _) = kind_and_table(place), kind_and_table(other)
    return f"--table {name}" if kind == other_kind else f"--store {kind} --table {name}"


def _named(registry: Binding) -> str:
    return f" {registry.table}" if registry.table else ""


TOPICS = keys.progress_partition("TOPICS")


class PublishedTopic(NamedTuple):
    """A product's topic. `id`: changes when the topic is created again; `version`: the product's."""

    topic: str
    id: str
    partitions: int
    version: int


def read_published_topics(items: Iterable[Item]) -> dict[str, PublishedTopic]:
    """Product -> its topic, by the items of `TOPICS`."""
    return {
        item["SK"]: PublishedTopic(item["topic"], item["id"], item["partitions"], item["version"]) for item in items
    }


def write_published_topic(product: str, topic: PublishedTopic) -> Write:
    """Notes the topic of a product."""
    return write_note(Key(TOPICS, product), topic._asdict())


def is_new(before: PublishedTopic | None, now: PublishedTopic) -> bool:
    """Whether the job publishes all documents of the product to this topic: for the first time, or by another version."""
    return before is None or (before.topic, before.version) != (now.topic, now.version)


def describe_change(product: str, before: PublishedTopic, now: PublishedTopic, *, routed: bool = False) -> str:
    """How a topic changed under its product, and the command to give; empty for the same topic. `routed`: the ledger knows where
    the messages are."""
    cure = f"`statestore republish {product}`"
    if before.id != now.id:
        return (
            f"topic {now.topic} of product {product} was deleted and created again: it lacks every document that has not "
            f"changed since. {cure} publishes all of them"
        )
    if before.partitions != now.partitions and routed:
        return (
            f"topic {now.topic} of product {product} has {now.partitions} partitions, and had {before.partitions}: a document "
            f"moves to its new partition when it next changes. {cure} moves all of them"
        )
    if before.partitions != now.partitions:
        return (
            f"topic {now.topic} of product {product} has {now.partitions} partitions, and had {before.partitions}: a new "
            "document of a root may be in another partition than its old one, which stays. Readers must take the highest "
            f"statestore.sequence of a key; or delete the topic, start the job again, and give {cure}"
        )
    return ""
