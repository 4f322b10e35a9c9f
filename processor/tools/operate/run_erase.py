"""Erases a row in an open job without a stream (`statestore erase`).

    1. Ask the source topic, and each topic that the entity read before, where it ends: records from there on are new.
    2. Erase the row, take its join keys out of the statistics, and work until all documents are published, whatever their gates
       say, and the indexes have shown the marker. Look whether a task of an earlier run has written the row again.
    3. Let the ledger's entries of the row's own documents expire.
    4. Remove the row's dead letters.
    5. Look at what the erasure does not reach, for the certificate.

An erasure that broke off is not done; the next one does all of it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from processor.counts import Count
from processor.engine.protocol.erasures import Erasure
from processor.engine.rounds.eraser import Eraser
from processor.errors import Stopped
from processor.job.kafka.open_schemas import open_schemas
from processor.job.run.failures import failure_reason, is_stop
from processor.job.run.job import Job
from processor.job.run.run_job import finish_background_work
from processor.job.run.topic_epochs import check_topics
from processor.tools.operate.erase_letters import RemovedLetters, erase_letters
from processor.tools.operate.leftovers import Leftovers, find_leftovers
from processor.tools.operate.letters_of_row import LetterChoice, RowLetters
from processor.tools.operate.run_backfill import obstacles
from processor.values.record import Record, Value
from processor.values.settled_form import NO_FORMS
from statestore import keys
from statestore.items import Row, encode_version

BROKEN_OFF = "stopped on request, and the row is not erased: run the same command again"
IS_BACK = "a task of an earlier run wrote the row again: give the same command again"
TopicConfigs = Mapping[str, Mapping[str, str]]
"""Topic -> its configuration; without the topics that the job may not ask about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport:
    """What an erasure did. `before`: the row as it was, None where the table had none. `new`: partition of the source topic ->
    the offset from which its records count as new. `tombstones`: product -> the sequence of the tombstone of its document.
    `kept`: those of its products whose ledger entry stays, because a product of their group still shows a document.
    `published`: how many messages went out. `left`: why work remains; nothing when the erasure is done. `expires`: whether
    the table removes the items whose time has come. `statistics`: how many joins had a join key of the row as their most frequent
    value. `leftovers`: what the erasure does not reach."""

    before: Row | None
    new: Mapping[int, int]
    tombstones: Mapping[str, int]
    published: int
    letters: RemovedLetters
    left: tuple[str, ...]
    expires: bool
    kept: frozenset[str] = frozenset()
    statistics: int = 0
    leftovers: Leftovers = field(default_factory=Leftovers)
    configs: TopicConfigs = field(default_factory=dict)


def run_erase(job: Job, entity: str, key: tuple[Value, ...], choice: LetterChoice) -> ErasureReport:
    """Erases the row with this primary key, and gives the lease back. `choice`: about dead letters that nobody can decode."""
    driver, sk = job.driver, keys.encode(key) or ""
    source = driver.plan.entities[entity].entity
    try:
        erasure, new = _erasure(job, entity, source.topic)
        eraser = Eraser(driver)
        erased = eraser.erase(entity, sk, erasure)
        statistics = job.registry.statistics.forget(_join_keys(erased.before))
        finish_background_work(job)
        eraser.release()
        left = (*obstacles(job), *_held(job, entity)) or (("stopped on request",) if job.unsettled else ())
        if eraser.is_back(entity, sk):
            left = (*left, IS_BACK)
        retired = eraser.retire_entries(entity, sk)
        letters = erase_letters(job.settings, job.admin, driver.store, _row_letters(job, entity, key, choice))
        described = driver.store.describe()
        leftovers = find_leftovers(job, entity, key)
        return ErasureReport(
            before=erased.before,
            new=new,
            tombstones=retired.tombstones,
            kept=retired.kept,
            published=driver.tally[Count.PUBLISHED] + driver.tally[Count.CORRECTIONS],
            letters=letters,
            left=(*left, *_letters_left(letters)),
            expires=described is not None and described.expires,
            statistics=statistics,
            leftovers=leftovers,
            configs=job.admin.configs(_topics(job, source.topic if new else "", leftovers)),
        )
    except Exception as failure:
        if is_stop(failure, job.stopping):
            raise Stopped(BROKEN_OFF) from failure
        raise failure_reason(job, failure) from failure
    finally:
        job.end()


def _erasure(job: Job, entity: str, topic: str) -> tuple[Erasure, Mapping[int, int]]:
    """The erasure of a row now: of the records in all topics that the entity has, had, or still reads to their end. And where
    the topic that it reads ends, by partition; empty where the topic does not exist."""
    named = {topic, *(boundary.topic for boundary in job.registry.epochs([], [entity]))}
    named |= {one.topic for one in job.registry.snapshot().entities if one.name == entity}
    present = job.admin.topics(sorted(named - {""}))
    ends = {name: job.admin.ends(name) for name in present}
    new = ends.get(topic, {})
    epochs = check_topics(job.registry, job.admin, [(topic, p) for p in new], {topic: entity})
    versions = {p: encode_version(epochs.of(topic, p, end), p, end) for p, end in new.items()}
    return Erasure(versions, ends={present[name].id: offsets for name, offsets in ends.items()}), new


def _row_letters(job: Job, entity: str, key: tuple[Value, ...], choice: LetterChoice) -> RowLetters:
    plan = job.driver.plan
    return RowLetters(
        entity=plan.entities[entity].entity,
        key=key,
        entities=plan.entities.keys(),
        documents={one.product.topic for one in plan.products.values() if one.product.root == entity},
        schemas=open_schemas(job.settings.schema_registry),
        choice=choice,
        forms=job.driver.progress.forms.get(entity, NO_FORMS),
    )


def _letters_left(letters: RemovedLetters) -> Iterator[str]:
    """Why dead letters of the row may still be in their topic."""
    if letters.refusal:
        yield f"{len(letters.records)} dead letters of the row are still in their topic: {letters.refusal}"
    if letters.mentions:
        places = ", ".join(place_text(record) for record in letters.mentions)
        yield (
            f"nobody can read the key of {len(letters.mentions)} dead letters that have the text of this key ({places}). Look at "
            "each with `statestore rejects show`. Then give the same command again, with --letter POSITION for each of the row, "
            "and --other-letter POSITION for each of another row"
        )


def place_text(record: Record) -> str:
    """The position of a record, as `rejects show` takes it."""
    return f"{record.topic}/{record.partition}/{record.offset}"


def _join_keys(row: Row | None) -> frozenset[str]:
    """The join keys that a row has and had, its primary key included: a join by that key needs no slot."""
    if row is None:
        return frozenset()
    held = {key for _, key in (*row.keys(), *((p.slot, p.key) for p in row.pending))}
    return frozenset(key for key in (row.key.sk, *held) if not keys.is_no_key(key))


def _topics(job: Job, source: str, leftovers: Leftovers) -> set[str]:
    """The topics that the certificate describes."""
    products = {product.product.topic for product in job.driver.plan.products.values()}
    others = {topic for _, topic in (*leftovers.document_topics, *leftovers.joined) if topic}
    return {job.settings.rejects_topic, *products, *others, *leftovers.source_topics, *([source] if source else [])}


def _held(job: Job, entity: str) -> tuple[str, ...]:
    """The products over the entity that publish nothing for now."""
    plan = job.driver.plan
    over = {product for product, _ in plan.occurrences.get(entity, ())} & job.driver.progress.walks.held
    return tuple(
        f"product {name} publishes nothing for now: end its pause with `statestore resume`" for name in sorted(over)
    )
