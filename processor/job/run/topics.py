"""The topics that the job reads, as the broker has them, and where their epochs begin (rule 2). The topics that it publishes to.

A topic that does not exist yet stops nothing: its entity has no rows, and the stream begins again once the topic is there. A
source may make the topic of a table with its first row. If none of the topics exists for GRACE_SECONDS, a person must act: the
names are wrong, or nothing writes to this broker. A topic that the job has read, and that is gone, is a failure: somebody deleted
it. Before the first write of a batch, `check_topics` compares its topics with the recorded ones.

When a plan begins, the job looks at the topics of its products: does each have all documents, and keep them? What does a plan
need to publish: sequences, the limits of topics, the ids of schemas? For a topic that drops documents, the job shows a warning
with the command to give, and continues.

An entity moves to another topic when the job has read the former one to its end (`EntityMoves`,
`processor.engine.protocol.epochs`).
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.protocol.epochs import (
    Epochs,
    Partition,
    TopicEnds,
    due_moves,
    entities_of,
    first_offsets,
    former_topics,
    has_begun,
    last_topic,
    move_boundaries,
    next_epoch,
    read_epochs,
)
from processor.engine.protocol.identity import (
    SEQUENCES,
    TOPICS,
    PublishedTopic,
    describe_change,
    is_new,
    ledgers_in,
    other_number,
    read_published_topics,
    read_sequences,
    write_published_topic,
    write_sequence,
)
from processor.engine.protocol.ledger import group_key, group_partition
from processor.engine.rounds.events import JobEvent, Report, no_report
from processor.engine.rounds.round import PublishSetup
from processor.environment.settings.settings import Settings
from processor.errors import BoundaryError, KafkaError, OwnedByAnother
from processor.job.kafka.admin import Admin, TopicDescription, message_limits
from processor.job.kafka.reader import read_topic
from processor.job.kafka.schemas import SchemaRegistration
from processor.job.run.binding import CHUNK, invalid_entry, shown_roots
from processor.text import duration_text, nearest_topic
from processor.values.record import partition_of_key, sequence_of
from registry.model import EpochBoundary
from registry.repository import Registry
from statestore.store import Done, Store

LOOK_SECONDS = 10.0
"""Between two questions to the broker about topics that are missing."""
ANSWER_SECONDS = 5.0
"""The longest wait for an answer about missing topics: the job must stop within 10 s of a signal."""
GRACE_SECONDS = 300.0
"""A job whose topics are all missing is wrong after this time: the connector may start after the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTopic:
    """A topic that does not exist. `since`: when the job missed it first, on its clock; `near`: the nearest topic of the broker
    that no entity reads; None where none is near."""

    topic: str
    entity: str
    since: float
    near: str | None

    @property
    def named(self) -> str:
        """Its name, with the nearest one."""
        return f"{self.topic} (the broker has {self.near})" if self.near else self.topic


@dataclass(slots=True, kw_only=True)
class SourceTopics:
    """The topics of the present stream, and those of the next one.

    now: the job's clock, in seconds.
    readers: each topic to read and its reader, at the last look. present: those of them that existed then; missing: the others.
    streamed: the topics that the stream reads.
    """

    admin: Admin
    registry: Registry
    now: Callable[[], float]
    report: Report
    readers: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, MissingTopic] = field(default_factory=dict)
    streamed: frozenset[str] = frozenset()
    next_look: float = 0.0
    said: str = ""

    @property
    def present(self) -> frozenset[str]:
        """The topics to read that exist."""
        return frozenset(self.readers.keys() - self.missing.keys())

    def look(self, readers: Mapping[str, str]) -> None:
        """Asks the broker which topics exist: when others are to read than before, and now and then while some are missing. A
        broker that does not answer the second question changes nothing: the monitor names it.

        Raises BoundaryError when one is gone that its entity has read.
        """
        same = readers == self.readers
        if same and (not self.missing or self.now() < self.next_look):
            return
        try:
            missing = self.find_missing(readers)
            found = self._describe(readers, missing)
        except KafkaError:
            if not same:
                raise
        else:
            self._tell(found, readers)
            self.readers, self.missing = dict(readers), found
            self._tell_wrong()
        self.next_look = self.now() + LOOK_SECONDS

    def find_missing(self, readers: Mapping[str, str]) -> frozenset[str]:
        """The topics among these that do not exist yet. Raises BoundaryError when one is gone that its entity has read."""
        missing = sorted(readers.keys() - self.admin.topics(sorted(readers), ANSWER_SECONDS).keys())
        for topic in missing:
            entity, entities = readers[topic], entities_of(readers[topic])
            boundaries = self.registry.epochs([topic], entities)
            if any(last_topic(boundaries, one) == topic for one in entities):
                raise BoundaryError(
                    f"topic {topic} is gone, and entity {entity} has read it: create it again, run `statestore epoch {topic}`, "
                    "and start with a new checkpoint; or give the entity another `topic`"
                )
        return frozenset(missing)

    def outdated(self, readers: Mapping[str, str]) -> bool:
        """Whether the stream reads other topics than it should."""
        return readers != self.readers or self.streamed != self.present

    @property
    def wrong(self) -> str:
        """Why an operator must act, empty where none must: none of the topics exists for a long time."""
        if not self.missing or self.present:
            return ""
        seconds = self.now() - max(one.since for one in self.missing.values())
        if seconds < GRACE_SECONDS:
            return ""
        names = ", ".join(one.named for one in self.missing.values())
        return (
            f"the job reads nothing: none of its topics exists, for {duration_text(seconds)}: {names}; correct `topic` of the "
            "entities and --bootstrap-servers, or start what writes the topics"
        )

    def _describe(self, readers: Mapping[str, str], missing: Collection[str]) -> dict[str, MissingTopic]:
        """The missing topics, each with the nearest name."""
        others = self.admin.names(ANSWER_SECONDS) - readers.keys() if missing else frozenset[str]()
        return {
            topic: MissingTopic(
                topic=topic,
                entity=readers[topic],
                since=self.missing[topic].since if topic in self.missing else self.now(),
                near=nearest_topic(topic, others),
            )
            for topic in sorted(missing)
        }

    def _tell(self, found: Mapping[str, MissingTopic], readers: Mapping[str, str]) -> None:
        """Reports each topic that is missing now and was not before, and each that is there at last."""
        for topic, one in found.items():
            if topic not in self.missing:
                near = f"; the broker has {one.near}" if one.near else ""
                text = (
                    f"topic {topic} of entity {one.entity} does not exist{near}: the job reads it from its first record once it "
                    "is there; create it, or correct `topic` of the entity"
                )
                self.report(JobEvent(what="missing topic", text=text, level="warning"))
        for topic in sorted(self.missing.keys() & readers.keys() - found.keys()):
            self.report(
                JobEvent(what="found topic", text=f"topic {topic} is there: the job reads it from its first record")
            )

    def _tell_wrong(self) -> None:
        """Reports once that none of the topics exists."""
        if self.wrong and not self.said:
            self.report(JobEvent(what="no topic", text=self.wrong, level="error"))
        self.said = self.wrong


def check_topics(
    registry: Registry, admin: Admin, partitions: Iterable[Partition], readers: Mapping[str, str]
) -> Epochs:
    """The epochs of the batch's records. `readers`: the reader of each topic. Records a topic that an entity reads for the
    first time; raises BoundaryError for a changed one."""
    names = sorted({topic for topic, _ in partitions})
    boundaries = list(registry.epochs(names, [entity for name in names for entity in entities_of(readers[name])]))
    topics = admin.topics(names)
    new: list[EpochBoundary] = []
    for name in names:
        if name in topics:
            new += new_boundaries(name, topics[name], readers[name], [*boundaries, *new])
    if new:
        registry.add_epochs(new)
    return read_epochs([*boundaries, *new])


def new_boundaries(
    name: str, topic: TopicDescription, reader: str, boundaries: Sequence[EpochBoundary]
) -> list[EpochBoundary]:
    """The boundaries to record for a topic that an entity reads for the first time, or again after another topic. Raises
    BoundaryError for a topic that changed."""
    entities = entities_of(reader)
    came = [entity for entity in entities if last_topic(boundaries, entity) != name]
    if len(entities) > 1 and (moved := [one for one in came if last_topic(boundaries, one) is not None]):
        raise BoundaryError(
            f"entity {moved[0]} has read another topic than {name}, which {reader} share: its rows have versions of that topic: "
            f"give {moved[0]} its former topic, or declare a new entity"
        )
    if came == entities:
        begins = first_offsets(entities[0], name, topic.id, range(topic.partitions), boundaries)
        epoch = max(next_epoch(boundaries, entity, name) for entity in entities)
        return [one for entity in entities for one in boundaries_of(name, topic, entity, epoch, begins)]
    known = [b for b in boundaries if b.topic == name]
    present = max(known, key=lambda b: b.epoch)
    recorded = len({b.partition for b in known if b.topic_id == present.topic_id})
    cure = f"pause its producer, then run `statestore epoch {name}`, and start again"
    if present.topic_id != topic.id:
        raise BoundaryError(
            f"topic {name} was deleted and created again (id {topic.id}, recorded {present.topic_id}): {cure} with a new "
            "checkpoint: the old checkpoint counts the offsets of the deleted topic"
        )
    if recorded != topic.partitions:
        raise BoundaryError(f"topic {name} has {topic.partitions} partitions, recorded {recorded}: {cure}")
    if not came:
        return []
    steps = {(b.partition, b.from_offset): b for b in sorted(known, key=lambda b: b.epoch) if b.topic_id == topic.id}
    return [replace(b, entity=entity) for entity in came for b in steps.values()]


def record_boundary(registry: Registry, admin: Admin, name: str, *, who: str, why: str) -> list[EpochBoundary]:
    """Records where the next epoch of a topic begins: at the present end of each partition, or at 0 of a topic that was
    created again, or that its entities read first. An erasure learns from a boundary at an end that the broker has lost
    records. For an entity that has yet to leave another topic, these are the boundaries of that move: the entity leaves the
    former topic at its present end. `who`, `why`: for the history."""
    entities = [entity.name for entity in registry.snapshot().entities if entity.topic == name]
    entities = entities or [_leaving_reader(registry, name)]
    readers = [entity for entity in entities if entity]
    known = registry.epochs([name], readers)
    entities = [one for one in entities if last_topic(known, one) == name] or entities
    reader = entities[0]
    last = last_topic(known, reader)
    topics = admin.topics(sorted({name, last or name}))
    topic = topics.get(name)
    if topic is None:
        raise BoundaryError(f"there is no topic {name}; create it first")
    if last is not None and last != name:  # such an entity shares no topic
        known = registry.epochs([name, last], readers)
        read = max((b for b in known if b.topic == last), key=lambda b: b.epoch).topic_id
        left = {one: found for one, found in topics.items() if one == name or found.id == read}
        broker = {one: TopicEnds(found.id, admin.watermarks(one)) for one, found in left.items()}
        ends = {(one, p): end for one, found in broker.items() for p, end in found.ends.items()}
        new = move_boundaries(reader, last, name, ends, broker, known)
    else:
        seen = {b.partition for b in known if last and (b.topic, b.topic_id) == (name, topic.id)}
        present = admin.ends(name) if seen else {}
        begins = {p: present[p] if p in seen else 0 for p in range(topic.partitions)}
        epoch = max(next_epoch(known, entity, name) for entity in entities)
        new = [one for entity in entities for one in boundaries_of(name, topic, entity, epoch, begins, seen)]
    registry.record_epochs(new, who=who, why=why)
    return new


def _leaving_reader(registry: Registry, topic: str) -> str:
    """The entity that reads the topic to its end, because it has another one now; empty where there is none."""
    entities = [entity.name for entity in registry.snapshot().entities]
    boundaries = registry.epochs([topic], entities)
    return next((entity for entity in entities if last_topic(boundaries, entity) == topic), "")


def boundaries_of(
    name: str,
    topic: TopicDescription,
    reader: str,
    epoch: int,
    from_offsets: Mapping[int, int],
    at_ends: Collection[int] = (),
) -> list[EpochBoundary]:
    """The boundaries at which an epoch of a topic begins, one for each partition. `at_ends`: the partitions that end there."""
    return [
        EpochBoundary(
            topic=name, topic_id=topic.id, partition=p, from_offset=at, epoch=epoch, entity=reader, at_end=p in at_ends
        )
        for p, at in sorted(from_offsets.items())
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTopics:
    """The topics of a job's products. `warned`: what this run has shown already."""

    admin: Admin
    store: Store
    report: Report
    warned: set[str] = field(default_factory=set)

    def look(self, plan: Plan) -> Mapping[str, Mapping[str, str]]:
        """Warns of topics that changed, or that drop documents, and notes new ones. Returns the configurations of the topics."""
        configs = self.admin.configs(product.product.topic for product in plan.products.values())
        for text in (*self._changes(plan), *_policies(plan, configs)):
            if text not in self.warned:
                self.warned.add(text)
                self.report(JobEvent(what="product topic", text=text, level="warning"))
        return configs

    def _changes(self, plan: Plan) -> Iterator[str]:
        topics = self.admin.topics([product.product.topic for product in plan.products.values()])
        noted = read_published_topics(self.store.partition(TOPICS))
        for name, product in plan.products.items():
            if (found := topics.get(product.product.topic)) is None:
                continue
            before = noted.get(name)
            now = PublishedTopic(product.product.topic, found.id, found.partitions, product.version)
            if before is None or is_new(before, now):
                self.store.write(write_published_topic(name, now))
            elif text := describe_change(name, before, now, routed=bool(product.product.partition_by)):
                yield text


def _policies(plan: Plan, configs: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A warning for each topic that is not compacted."""
    for name, product in plan.products.items():
        topic = product.product.topic
        policy = configs.get(topic, {}).get("cleanup.policy", "compact")
        if policy != "compact":
            kept = configs[topic].get("retention.ms", "-1")
            loses = "drops documents" if "delete" in policy and kept != "-1" else "keeps every message"
            yield (
                f"topic {topic} of product {name} has cleanup.policy={policy} and {loses}: kafka-configs.sh --alter "
                f"--entity-type topics --entity-name {topic} --add-config cleanup.policy=compact"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPreparation:
    """The preparation of a run. `configs`: asks for the configurations of a plan's topics; `partitions`: for their partitions, by
    product. `letter_bytes`: the largest dead letter, None for any."""

    settings: Settings
    store: Store
    configs: Callable[[Plan], Mapping[str, Mapping[str, str]]]
    partitions: Callable[[Plan], Mapping[str, int]]
    registration: SchemaRegistration
    letter_bytes: int | None
    report: Report = no_report

    def setup(self, plan: Plan) -> PublishSetup:
        """What the driver needs to publish by this plan. Registers the schemas of Avro products."""
        partitions = self.partitions(plan)
        sequences = earlier_sequences(self.settings, plan, self.store, self.report, partitions)
        limits = message_limits(plan, self.configs(plan))
        registered = self.registration.register(plan)
        return PublishSetup(
            letter_bytes=self.letter_bytes,
            earlier_sequences=sequences,
            message_limits=limits,
            partitions=partitions,
            schema_ids=registered.ids,
            unready=registered.refused,
        )


def earlier_sequences(
    settings: Settings,
    plan: Plan,
    store: Store,
    report: Report = no_report,
    partitions: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Product -> the highest sequence that its topic had before the product published there. Reads the topic of a product that
    the table does not know yet, or knows with another root or another topic. Reports messages that no job wrote, and notes where
    the topic shows documents, if their keys do not say it. Raises OwnedByAnother where the registry gives a product another
    ledger number than the table knows. `partitions`: of the topics, by product."""
    items = {item["SK"]: item for item in store.partition(SEQUENCES)}
    known, found = read_sequences(items.values()), dict[str, int]()
    for name, product in plan.products.items():
        ledger = group_partition(product.ledger)
        if other := other_number(items.values(), name, ledger, product.number):
            raise OwnedByAnother(
                f"the registry {settings.registry_schema} went back to an earlier moment: {other}. Restore a newer backup, or "
                "stop every job and make a new registry for the table: `statestore rebuild-registry --registry-is-lost` with "
                "another --registry-schema"
            )
        topic, sharing = product.product.topic, {one.product.name for one in plan.sharing(product)}
        if (name, ledger, topic) not in known:
            above, elsewhere = _highest_sequence(settings, plan, product, report, (partitions or {}).get(name, 0))
            if elsewhere:
                _note_places(settings, plan, product, store)
            former = ledgers_in([items[name]] if name in items else [])
            store.write(write_sequence(name, above, topic, ledger, product.number, former))
            for other, item in items.items():  # a product that comes back to this topic has to read it again
                if other != name and item.get("topic") == topic and other not in sharing:
                    place = (item["ledger"], item["number"], item["former"])
                    store.write(write_sequence(other, item["above"], "", *place))
            known[name, ledger, topic] = above
        found[name] = known[name, ledger, topic]
    return found


def _note_places(settings: Settings, plan: Plan, product: ProductPlan, store: Store) -> None:
    """Notes in the ledger where the topic of a product that comes to it shows documents: of another product with `partition_by`,
    of another table, or from before the topic got more partitions. The product then moves them."""
    messages = read_topic(settings.bootstrap_servers, dict(settings.kafka), product.product.topic)
    waiting = list(shown_roots(plan, product, messages))
    while waiting:
        chunk, waiting = waiting[:CHUNK], waiting[CHUNK:]
        items = store.get([group_key(product.ledger, one.root) for one in chunk])
        written = store.write_all([invalid_entry(product, one, items, placed=True) for one in chunk])
        waiting += [one for one, outcome in zip(chunk, written, strict=True) if not isinstance(outcome, Done)]


def _highest_sequence(
    settings: Settings, plan: Plan, product: ProductPlan, report: Report, partitions: int
) -> tuple[int, bool]:
    """The highest sequence of the messages of a product's topic, 0 without one; and whether one is elsewhere than its key says.
    Passes over messages that no job wrote, and reports them. Those of products that share the topic, by other keys, do not count.
    `partitions`: of the topic, 0 where they are unknown."""
    highest, foreign, first, elsewhere, topic = 0, 0, "", False, product.product.topic
    for message in read_topic(settings.bootstrap_servers, dict(settings.kafka), topic):
        sequence = sequence_of(dict(message.headers))
        if (
            sequence
            and product.product.key
            and not plan.root_of(product, (message.key or b"").decode(errors="replace"))
        ):
            continue
        if sequence is None:
            foreign, first = foreign + 1, first or f"partition {message.partition}, offset {message.offset}"
        highest = max(highest, sequence or 0)
        place = partition_of_key(message.key or b"", partitions) if sequence and partitions and not elsewhere else -1
        elsewhere = elsewhere or message.partition != place >= 0
    if foreign:
        text = (
            f"topic {topic} has {foreign} messages that no statestore job wrote, the first at {first}: their sequences do not "
            "count. No other program may write to the topic of a product; `statestore verify` names documents that differ"
        )
        report(JobEvent(what="product topic", text=text, level="warning"))
    return highest, elsewhere


MOVE_SECONDS = 1.0
"""Between two questions to the broker and the registry, while an entity waits for its next topic."""


@dataclass(slots=True, kw_only=True)
class EntityMoves:
    """The moves that the job has yet to make.

    now: the job's clock, in seconds.
    plan: the job's plan, with the topics that the registry has.
    former: entity -> the topic that the job reads until the entity moves.
    targets: a former topic -> where each partition ended when the next topic had begun.
    due: whether a move can be made, or somebody else made it: the stream must begin again.
    looked_at: the positions at the last look. next_look: when the next one is due, on the job's clock.
    """

    registry: Registry
    admin: Admin
    now: Callable[[], float]
    report: Report
    plan: Plan | None = None
    former: Mapping[str, str] = field(default_factory=dict)
    targets: dict[str, TopicEnds] = field(default_factory=dict)
    due: bool = False
    looked_at: Mapping[Partition, int] = field(default_factory=dict)
    next_look: float = -math.inf

    def fit(self, plan: Plan) -> Plan:
        """The plan that the job works by: where an entity has yet to leave a former topic, it reads that. Of a former topic that
        is gone, or that somebody created again, nothing remains to read: the entity moves at once. Meanwhile another entity that
        has the former topic now reads none."""
        topics = _entity_topics(plan)
        boundaries = self._boundaries(topics)
        last = former_topics(topics, boundaries)
        present = self.admin.topics(sorted({*last.values(), *(topics[entity] for entity in last)})) if last else {}
        ids = {b.topic: b.topic_id for b in sorted(boundaries, key=lambda b: b.epoch)}
        former = {
            entity: topic for entity, topic in last.items() if topic in present and present[topic].id == ids[topic]
        }
        for entity, topic in sorted(former.items()):
            if self.former.get(entity) != topic:
                new = topics[entity]
                text = (
                    f"entity {entity} has topic {new} now: the job reads {topic} to its end, once {new} has a new record, and "
                    f"then {new}"
                )
                if new not in present:
                    text += f"; {new} does not exist yet"
                self.report(JobEvent(what="topic changed", text=text))
        self.plan, self.former, self.due, self.next_look = plan, former, False, -math.inf
        self.targets = {topic: ends for topic, ends in self.targets.items() if topic in former.values()}
        others = {
            entity: topic for entity, topic in topics.items() if entity not in former and topic in former.values()
        }
        waiting = {entity: "" for entity, topic in others.items() if last_topic(boundaries, entity) != topic}
        return plan.with_topics({**former, **waiting})

    def look(self, positions: Mapping[Partition, int]) -> bool:
        """Whether a move is due. Asks broker and registry after each batch, and now and then. `positions`: where the job reads on
        in each partition."""
        if self.former and not self.due and (positions != self.looked_at or self.now() >= self.next_look):
            self.looked_at, self.next_look = dict(positions), self.now() + MOVE_SECONDS
            self.due = self.is_outdated() or bool(self._due_now(positions))
        return self.due

    def is_outdated(self) -> bool:
        """Whether an operator made a move that the job waits for (`statestore epoch`): then the former topic is none of the
        entity's any more, and no batch may read it."""
        if not self.former:
            return False
        assert self.plan is not None
        topics = _entity_topics(self.plan)
        last = former_topics(topics, self._boundaries(topics))
        outdated = any(last.get(entity) != topic for entity, topic in self.former.items())
        self.due = self.due or outdated
        return outdated

    def make(self, positions: Mapping[Partition, int]) -> Plan | None:
        """Makes the moves that are due; returns the plan to continue with, None where nothing moved. `positions`: where the next
        batch begins, by the checkpoint. No stream may run."""
        if self.plan is None or not self.former:
            return None
        topics = _entity_topics(self.plan)
        outdated = self.is_outdated()
        moving = frozenset() if outdated else self._due_now(positions)
        new: list[EpochBoundary] = []
        if moving:
            boundaries, broker = self._boundaries(topics), self._broker()
            for entity in sorted(moving):
                former = self.former[entity]
                new += move_boundaries(entity, former, topics[entity], positions, broker, [*boundaries, *new])
            self.registry.add_epochs(new)
        self.due = False
        if not (moving or outdated):
            return None
        for entity in sorted(moving):
            former = self.former[entity]
            ends = ", ".join(f"{b.partition}: {b.from_offset}" for b in new if (b.entity, b.topic) == (entity, former))
            text = (
                f"entity {entity} has left topic {former} (partition: offset {ends}) and reads {topics[entity]}: the job reads "
                f"no later record of {former}"
            )
            self.report(JobEvent(what="topic left", text=text))
        return self.fit(self.plan)

    def _due_now(self, positions: Mapping[Partition, int]) -> frozenset[str]:
        """The entities that can move now. The end of a former topic counts as it was when the next one had begun, so a producer
        that still writes to it holds nothing up."""
        assert self.plan is not None
        topics, broker = _entity_topics(self.plan), self._broker()
        boundaries = self._boundaries(topics)
        for entity, topic in self.former.items():
            if topic in broker and has_begun(entity, topics[entity], broker, boundaries):
                broker[topic] = self.targets.setdefault(topic, broker[topic])
        return due_moves(self.former, topics, positions, broker, boundaries)

    def _broker(self) -> dict[str, TopicEnds]:
        """The former and the next topics that exist."""
        assert self.plan is not None
        topics = _entity_topics(self.plan)
        named = {*self.former.values(), *(topics[entity] for entity in self.former)}
        present = self.admin.topics(sorted(named))
        return {name: TopicEnds(one.id, self.admin.watermarks(name)) for name, one in present.items()}

    def _boundaries(self, topics: Mapping[str, str]) -> Sequence[EpochBoundary]:
        return self.registry.epochs(sorted(topics.values()), sorted(topics))


def _entity_topics(plan: Plan) -> dict[str, str]:
    """The topic of each entity."""
    return {name: entity.entity.topic for name, entity in plan.entities.items()}
