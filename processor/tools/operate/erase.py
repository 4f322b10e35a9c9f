"""Erases a row in an open job without a stream (`statestore erase`), and does the work that edits left (`statestore backfill`).

    1. Ask the source topic, and each topic that the entity read before, where it ends: records from there on are new.
    2. Erase the row, take its join keys out of the statistics, and all roots out of the reports of jobs. Work until all documents
       are published, whatever their gates say, and the indexes have shown the marker. Look whether a task of an earlier run has
       written the row again.
    3. Let the ledger's entries of the row's own documents expire.
    4. Remove the row's dead letters from their topic.
    5. Look at what the erasure does not reach, for the certificate: former topics, products that are gone, and the history of the
       registry. Nobody writes to these places any more, or nobody may change them.

An erasure that broke off is not done; the next one does all of it again. All progress of a backfill is in the table and in the
registry, so a later backfill or run continues one that broke off.

**Which dead letters are those of a row**: the keys that they show decide, never text within other text. A dead letter names the
entity of its record. The letter in place of a document names the entity of the root, and has the key of the document. So the
letters of former topics count too. A letter without such a name, or with that of an entity that is no more, belongs to the entity
that reads its topic. A letter whose key is unreadable may be one of any row. It stays, unless a person looked at it and chose
it.

**How they go**: Kafka removes records only from the beginning of a partition. So the other dead letters go to the end of the
topic, with their own times, and then the broker removes all before them. A crash between the two leaves dead letters twice, and a
reader counts each once.

    1. Wait until no transaction is open: behind it are letters that no reader sees yet.
    2. Read the topic up to that end, and find the letters of the row.
    3. End their replays, copy the others to the end of the topic, and let the broker remove what step 2 read, and nothing else.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Literal, NamedTuple

from processor.counts import Count
from processor.engine.plan.plan import LedgerPlace, Plan, root_of
from processor.engine.protocol.epochs import topic_readers
from processor.engine.protocol.erasures import Erasure
from processor.engine.protocol.ledger import NO_DOCUMENT, group_key, read_entry
from processor.engine.protocol.replays import forget_letter, letter_position
from processor.engine.rounds.decoding import shown_keys
from processor.engine.rounds.operators import Eraser
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError, Stopped
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import TRANSACTION_SECONDS, KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.job.kafka.schemas import open_schemas
from processor.job.landing.landing import LandingState, landing_states
from processor.job.run.job import Job
from processor.job.run.outages import is_stop
from processor.job.run.run_job import failure_reason, finish_background_work, keep_last_progress
from processor.job.run.topics import check_topics
from processor.language.product.product import Product
from processor.values import canonical_json
from processor.values.dead_letters import rejected_record
from processor.values.decimal_forms import NO_FORMS, ColumnForms
from processor.values.entity import Entity
from processor.values.framing import FramedReader, Part, any_framing, bare_body, part_bytes
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Message, Record, Rejected, Value
from registry.edits.history import past_products
from registry.model import HistoryEntry, json_text
from statestore import keys
from statestore.items import Row, encode_version
from statestore.store import Store

SHORTEST_TEXT = 6
"""Fewer characters of a key are in the bytes of too many other records by chance."""
LetterPlace = tuple[str, int, int]
"""Topic, partition and offset of a record."""
Belonging = Literal["row", "other", "unread", "mention"]
"""`unread`: its key is unreadable; `mention`: nor that, and its bytes have the text of the row's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterChoice:
    """What a person decided about dead letters whose key is unreadable. `own`: those of the row; `others`: those of other
    rows."""

    own: frozenset[LetterPlace] = field(default_factory=frozenset)
    others: frozenset[LetterPlace] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLetters:
    """Tells the dead letters of the row with this key. `entities`: the names of all entities. `documents`: the topics of the
    products whose root is the entity; `keyed`: those of these products whose messages have other keys. `schemas`: reads framed
    records. `forms`: of the entity's decimals, as they are settled."""

    entity: Entity
    key: tuple[Value, ...]
    entities: Collection[str]
    documents: Collection[str]
    schemas: FramedReader
    choice: LetterChoice
    forms: ColumnForms = field(default_factory=dict)
    keyed: Sequence[Product] = ()

    def belongs(self, letter: Rejected) -> Belonging:
        """Whose a dead letter is. Asks the schema registry for the schemas of a framed record."""
        record = letter.record
        if letter.code in OF_DOCUMENTS:
            return "row" if self._is_entitys(letter, self.documents) and self._is_document(record) else "other"
        if not self._is_entitys(letter, (self.entity.topic,)):
            return "other"
        self.schemas.fetch(record)
        if shown := shown_keys(record, self.entity, self.schemas, self.forms):
            return "row" if self.key in shown else "other"
        place = record.topic, record.partition, record.offset
        if place in self.choice.own:
            return "row"
        if place in self.choice.others:
            return "other"
        return "mention" if mentions(record, self.key) else "unread"

    def _is_entitys(self, letter: Rejected, topics: Collection[str]) -> bool:
        if letter.entity in self.entities:
            return letter.entity == self.entity.name
        return letter.record.topic in topics

    def _is_document(self, record: Record) -> bool:
        text, own = (record.key or b"").decode(errors="replace"), keys.encode(self.key)
        return any(root_of(self.entity, text, product) == own for product in (None, *self.keyed))


def mentions(record: Record, key: tuple[Value, ...]) -> bool:
    """Whether the bytes of a record have the text of each part of the key: in text as whole words."""
    if sum(len(str(part)) for part in key) < SHORTEST_TEXT:
        return False
    places: tuple[Part, ...] = ("key", "value")
    return all(any(_holds(record, place, part) for place in places) for part in key)


def mentions_text(text: str, key: tuple[Value, ...]) -> bool:
    """Whether a text has each part of the key as whole words."""
    return sum(len(str(part)) for part in key) >= SHORTEST_TEXT and all(_has_word(text, part) for part in key)


def _holds(record: Record, place: Part, part: Value) -> bool:
    data = part_bytes(record, place)
    if any_framing(record, place) is not None:
        text = part.encode(errors="replace") if isinstance(part, str) else None
        return text is not None and (text in data or text in bare_body(record, place))
    return _has_word(data.decode(errors="replace"), part)


def _has_word(text: str, part: Value) -> bool:
    forms = {str(part), canonical_json.dumps(part).strip('"')}
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) for form in forms)


TRANSACTION_WAIT = 30.0
"""Seconds that the erasure waits for open transactions of the topic. A job that lives ends each of its own within a batch."""


class RemovedLetters(NamedTuple):
    """The records of the dead letters of a row. `refusal`: why the topic still holds them, else empty. `unread`: the records of
    dead letters of the entity whose key is unreadable, and that stay; `mentions`: those among them that have the key's text."""

    records: tuple[Record, ...] = ()
    refusal: str = ""
    unread: tuple[Record, ...] = ()
    mentions: tuple[Record, ...] = ()


class _Read(NamedTuple):
    """What the topic holds. `messages`: all of them; `letters`: those among them that are dead letters, by their place in
    `messages`; `ends`: where the reading ended."""

    messages: list[Record]
    letters: dict[int, Rejected]
    ends: Mapping[int, int]


def erase_letters(
    settings: Settings, admin: Admin, store: Store, row: RowLetters, patience: float = TRANSACTION_WAIT
) -> RemovedLetters:
    """Removes the dead letters of the row. No replay takes them afterwards, even if the broker keeps them. `patience`: seconds
    to wait for open transactions of other jobs."""
    waits = _wait_for_transactions(admin, settings.dead_letter_topic, patience)
    read = _read(settings, admin)
    found = {at: row.belongs(letter) for at, letter in read.letters.items()}

    def records(*kinds: Belonging) -> tuple[Record, ...]:
        by_place = {letter.record: None for at, letter in read.letters.items() if found[at] in kinds}
        return tuple(by_place)

    for record in records("row"):
        store.write(forget_letter(record))
    refusal = waits
    own = {at for at, kind in found.items() if kind == "row"}
    try:
        if own and not refusal:
            _rewrite(settings, admin, [one for at, one in enumerate(read.messages) if at not in own], read.ends)
    except StatestoreError as error:
        refusal = str(error)
    return RemovedLetters(records("row"), refusal, records("unread", "mention"), records("mention"))


def _wait_for_transactions(admin: Admin, topic: str, patience: float) -> str:
    """Waits until readers see all that the topic holds now. Returns why they do not, after a while; else nothing."""
    ends, until = admin.ends(topic), monotonic() + patience
    while behind := {p: end for p, end in admin.stable_ends(topic).items() if end < ends.get(p, 0)}:
        if monotonic() >= until:
            at = ", ".join(f"{topic}/{p} from offset {offset}" for p, offset in sorted(behind.items()))
            return (
                f"a transaction of another job is open, and nobody can read the dead letters behind it ({at}). Wait until it "
                f"ends: the broker ends that of a killed job after {TRANSACTION_SECONDS // 60} minutes"
            )
        sleep(0.2)
    return ""


def _read(settings: Settings, admin: Admin) -> _Read:
    """All that readers see of the topic now."""
    topic = settings.dead_letter_topic
    ends = admin.stable_ends(topic)
    read = read_topic(settings.bootstrap_servers, dict(settings.kafka), topic)
    messages = [message for message in read if message.offset < ends.get(message.partition, 0)]
    letters = {at: letter for at, message in enumerate(messages) if (letter := _letter(message))}
    return _Read(messages, letters, ends)


def _letter(message: Record) -> Rejected | None:
    """The dead letter that a message is, if it is one."""
    kept = Message(topic=message.topic, key=message.key, value=message.value, headers=message.headers)
    try:
        return rejected_record(kept)
    except (KeyError, ValueError):  # another program wrote to the topic
        return None


def _rewrite(settings: Settings, admin: Admin, kept: Sequence[Record], ends: Mapping[int, int]) -> None:
    """Sends these messages again, and removes all before `ends`."""
    topic = settings.dead_letter_topic
    config = admin.configs([topic]).get(topic, {})
    if config.get("message.timestamp.type") == "LogAppendTime":
        raise StatestoreError(
            f"topic {topic} keeps its own times (LogAppendTime), and a copy would make old dead letters new"
        )
    admin.delete_before(topic, admin.begins(topic))  # removes nothing: it asks for the right before the first copy
    outbox = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka))
    for message in kept:
        copy = Message(topic=topic, key=message.key, value=message.value, headers=message.headers)
        outbox.produce(copy, message.partition, message.timestamp)
    outbox.flush()
    admin.delete_before(topic, ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """`source_topics`: former topics of the entity. `joined`: the entities that join with it, each with its topic, empty where it
    has none. `document_topics`: (product, topic) where no product publishes any more. `ledgers`: products without a definition
    whose last document of the row is in the ledger. `versions`: the versions of the registry whose entries in the history have
    the key's text. `landings`: those that hold documents of these topics. `groups`: the products whose groups the row may have
    been in, each with its columns."""

    source_topics: tuple[str, ...] = ()
    joined: tuple[tuple[str, str], ...] = ()
    document_topics: tuple[tuple[str, str], ...] = ()
    ledgers: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    landings: tuple[LandingState, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()


def find_leftovers(job: Job, entity: str, key: tuple[Value, ...]) -> Leftovers:
    """Asks the registry, the table, and the broker for the topics that still exist."""
    plan, history = job.driver.plan, job.registry.history()
    own = plan.entities[entity].entity.topic
    former = {one.topic for one in job.registry.epochs([], [entity])} - {own}
    past = past_products(history, entity)
    present = {product.product.topic for product in plan.products.values()}
    sharing = {product.product.topic for product in plan.products.values() if product.product.key}
    replaced = present - sharing  # another product has written over the documents, by the same keys
    left = {(one.name, one.topic) for one in past if one.topic not in replaced}
    left -= {(name, product.product.topic) for name, product in plan.products.items()}
    joined = {(name, plan.entities[name].entity.topic) for name in _joined(plan, entity)}
    asked = {*former, *(topic for _, topic in left | joined)}
    there = job.admin.topics(sorted(asked)) if asked else {}
    gone = sorted({one.name for one in past if one.root == entity} - plan.products.keys())
    landings = landing_states(job.registry.landings.all(), job.settings.bootstrap_servers, dict(job.settings.kafka))
    root = keys.encode(key) or ""
    numbers = job.registry.snapshot().numbers
    places = {name: LedgerPlace(entity, numbers[entity, name]) for name in gone}
    items = job.driver.store.get([group_key(place, root) for place in places.values()])
    shown = {name: read_entry(items.get(group_key(place, root)), place.number) for name, place in places.items()}
    return Leftovers(
        source_topics=tuple(sorted(former & there.keys())),
        joined=tuple((name, topic if topic in there else "") for name, topic in sorted(joined)),
        document_topics=tuple(sorted(one for one in left if one[1] in there)),
        ledgers=tuple(name for name, entry in shown.items() if entry.hash != NO_DOCUMENT),
        versions=tuple(sorted({entry.version for entry in history if _names_key(entry, key)})),
        landings=tuple(one for one in landings if one.topic in present | {topic for _, topic in left}),
        groups=tuple(
            (name, ", ".join(one.group.key))
            for name, one in plan.products.items()
            if one.group and one.group.rows == entity
        ),
    )


def _joined(plan: Plan, entity: str) -> set[str]:
    """The entities that join with this one; itself too, where it joins itself."""
    pairs = {(node.above, node.join.entity) for product in plan.products.values() for node in product.nodes}
    return {other for pair in pairs for one, other in (pair, pair[::-1]) if one == entity}


def _names_key(entry: HistoryEntry, key: tuple[Value, ...]) -> bool:
    return mentions_text(f"{entry.why or ''}\n{json_text([entry.old, entry.new])}", key)


def run_backfill(job: Job) -> tuple[str, ...]:
    """Works until no work remains that can continue, or until an operator stops the job. Then gives the lease back. Returns why
    work remains: nothing when all is done."""
    try:
        finish_background_work(job)
        left = obstacles(job) or (("stopped on request",) if job.unsettled else ())
        keep_last_progress(job)
    except Exception as failure:
        if is_stop(failure, job.stopping):
            return ("stopped on request",)
        raise failure_reason(job, failure) from failure
    finally:
        job.end()
    return left


def obstacles(job: Job) -> tuple[str, ...]:
    """Why walks, products and steps stopped in this run."""
    walks = (f"{' '.join(walk)} stopped: {reason}" for walk, reason in job.driver.progress.walks.stuck.items())
    products = (f"product {name} stopped: {reason}" for name, reason in job.driver.progress.backlog.stopped.items())
    steps = (job.follower.obstacle,) if job.follower is not None and job.follower.obstacle else ()
    return (*walks, *products, *steps)


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
    """Erases the row with this primary key, and gives the lease back. `choice`: about dead letters that cannot be decoded."""
    driver, sk = job.driver, keys.encode(key) or ""
    source = driver.plan.entities[entity].entity
    try:
        erasure, new = _erasure(job, entity, source.topic)
        eraser = Eraser(driver)
        erased = eraser.erase(entity, sk, erasure)
        statistics = job.registry.statistics.forget(_join_keys(erased.before))
        job.registry.runs.forget_roots()
        finish_background_work(job)
        eraser.release()
        left = (*obstacles(job), *_held(job, entity)) or (("stopped on request",) if job.unsettled else ())
        if eraser.is_back(entity, sk):
            left = (*left, IS_BACK)
        retired = eraser.retire_entries(entity, sk)
        letters = erase_letters(job.settings, job.admin, driver.store, _row_letters(job, entity, key, choice))
        job.registry.letters.forget([letter_position(record) for record in letters.records])
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
    readers = topic_readers({name: one.entity.topic for name, one in job.driver.plan.entities.items()})
    epochs = check_topics(job.registry, job.admin, [(topic, p) for p in new], {topic: readers.get(topic, entity)})
    versions = {p: encode_version(epochs.of(topic, p, end), p, end) for p, end in new.items()}
    return Erasure(versions, ends={present[name].id: offsets for name, offsets in ends.items()}), new


def _row_letters(job: Job, entity: str, key: tuple[Value, ...], choice: LetterChoice) -> RowLetters:
    plan = job.driver.plan
    return RowLetters(
        entity=plan.entities[entity].entity,
        key=key,
        entities=plan.entities.keys(),
        documents={one.product.topic for one in plan.products.values() if one.product.roots == entity},
        schemas=open_schemas(job.settings.schema_registry),
        choice=choice,
        forms=job.driver.progress.forms.get(entity, NO_FORMS),
        keyed=[one.product for one in plan.products.values() if one.product.roots == entity and one.product.key],
    )


def _letters_left(letters: RemovedLetters) -> Iterator[str]:
    """Why dead letters of the row may still be in their topic."""
    if letters.refusal:
        yield f"{len(letters.records)} dead letters of the row are still in their topic: {letters.refusal}"
    if letters.mentions:
        places = ", ".join(place_text(record) for record in letters.mentions)
        yield (
            f"nobody can read the key of {len(letters.mentions)} dead letters that have the text of this key ({places}). Look at "
            "each with `statestore dead-letters show`. Then give the same command again, with --letter POSITION for each of the "
            "row, and --other-letter POSITION for each of another row"
        )


def place_text(record: Record) -> str:
    """The position of a record, as `dead-letters show` takes it."""
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
    return {job.settings.dead_letter_topic, *products, *others, *leftovers.source_topics, *([source] if source else [])}


def _held(job: Job, entity: str) -> tuple[str, ...]:
    """The products over the entity that publish nothing for now."""
    plan = job.driver.plan
    over = {product for product, _ in plan.occurrences.get(entity, ())} & job.driver.progress.walks.held
    return tuple(
        f"product {name} publishes nothing for now: end its pause with `statestore resume`" for name in sorted(over)
    )
