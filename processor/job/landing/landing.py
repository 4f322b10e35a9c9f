"""The loop of a landing: reads batches of the product's topic, and lets the target take each. Its port shows its figures for a
person, and as metrics (`land --status-port`).

The target's offsets decide where a partition continues, so no crash and no repeated delivery changes what the target holds. While
the target is away, the loop keeps its batch and tries again, after pauses that grow.

1. At each assignment, and regularly, the loop asks for the id of the topic. A topic that was deleted and created again begins at
   its first message. The documents of the earlier one stay until their key has a message. When the landing has caught up with a
   topic that has messages, those whose key has none go.
2. Before each batch the loop compares the target's offsets with its own. A target that went back, such as a standby without the
   last commits, gets the lost batches again.
3. The group in Kafka is behind the target, or equal. Where it stays ahead in a partition, another process lands that partition
   in a copy of the target, and this one ends.

`status` shows the landings of a registry: where each is, how far it is, and when it landed something last. The registry knows
each landing until a person removes it. The broker knows how far it is: a landing stores a note with the offsets of its group. The
broker forgets a group without processes after `offsets.retention.minutes`, 7 days by default.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from html import escape
from random import uniform
from threading import Event
from time import monotonic, time
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from processor.engine.rounds.events import JobEvent, Report, Troubles, trouble_line
from processor.errors import KafkaError, Stopped
from processor.job.kafka.admin import GroupState, group_states
from processor.job.kafka.reader import GroupReader, Offsets, TopicPortion
from processor.job.landing.target import (
    PRODUCT_HEADER,
    LandedMessage,
    LandedTopic,
    LandingError,
    Target,
    TargetAway,
    TopicReplaced,
    read_message,
    why_foreign,
)
from processor.job.metrics.metrics import LANDING_METRICS, read_metrics
from processor.job.metrics.status_page import Pages, RunState, metrics_text
from registry.errors import RegistryError
from registry.model import KnownLanding

BATCH: Final = 1_000
"""The most messages of a batch."""
WAIT_SECONDS: Final = 0.5
"""The longest wait for more messages before a batch lands."""
ASK_SECONDS: Final = 10.0
"""After this silence the landing asks the broker for an answer."""
SAY_SECONDS: Final = 10.0
"""Between two lines about what landed, and two looks at the topic and the group."""
NOTE_SECONDS: Final = 60.0
"""Between two heartbeats of this process to the registry."""
PAUSE_SECONDS: Final = 10.0
"""The longest pause before another try."""
FOREIGN_LOOKS: Final = 3
"""Looks in which the group must be ahead of the target: another process of this landing may just correct its offsets."""
KAFKA: Final = "broker"
TOPIC: Final = "topic"
REGISTRY: Final = "registry"
_T = TypeVar("_T")


class TargetWentBack(Exception):
    """The target lacks batches that it had taken."""


@dataclass(slots=True, kw_only=True)
class Landing:
    """One process of a landing."""

    topic: LandedTopic
    """That it lands."""
    target: Target
    look: Callable[[], LandedTopic | None]
    """The topic at the broker now, None where there is none."""
    ends: Callable[[], Mapping[int, int]]
    """The offsets that the topic has now."""
    join: Callable[[Offsets], GroupReader]
    """Joins the group of the product's topic, with the target's offsets."""
    note: Callable[[], None]
    """Sends a heartbeat of this process to the registry."""
    troubles: Troubles
    report: Report
    stopping: Event
    goal: Mapping[int, int]
    """The offsets that the topic had at the start."""
    once: bool
    """The landing ends at the goal."""
    others: frozenset[str] = frozenset()
    """The other products of the topic, whose messages it passes over."""
    earlier: bool = False
    """The target has documents of an earlier topic of this name."""
    tally: Counter[str] = field(default_factory=Counter)
    """The counts of this process so far."""
    shown: bool = False
    """Readers see the documents."""
    behind: int = 0
    """How many messages of its partitions wait."""
    landed_at: float | None = None
    """When a batch landed last, in seconds since 1970."""
    _said: Counter[str] = field(default_factory=Counter)
    _said_at: float = field(default_factory=monotonic)
    _noted_at: float = field(default_factory=monotonic)
    _waiting: str = ""
    _foreign: str = ""
    _heard_at: float = field(default_factory=monotonic)
    _landed: dict[int, int] = field(default_factory=dict)
    _ahead: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def product(self) -> str:
        """The name of the product."""
        return self.topic.product

    def run(self) -> None:
        """Lands until the goal, or until `stopping` is set. Raises KafkaError, LandingError."""
        with suppress(Stopped):
            if self.earlier:
                self._say_earlier()
            while not self._read():
                pass

    def _read(self) -> bool:
        """Reads in the group until the landing ends. False where it must join again, by other offsets or for another topic."""
        self._landed = {}
        try:
            with closing(self.join(self._places)) as reader:
                while not self.stopping.is_set():
                    reading = reader.read(BATCH, WAIT_SECONDS)
                    if reading.ends:
                        self._land(reader, reading)
                    elif self.once and self._show():
                        break
                    else:
                        self._ask(reader)
                    self._say(reader)
            return True
        except TargetWentBack:
            text = f"{self.target.place} lacks the last batches that it had taken: they land again"
            self.report(JobEvent(what="repeated", text=text, level="warning"))
        except TopicReplaced:
            self._begin_topic()
        except KafkaError:
            if self._is_there():
                raise
            self._begin_topic()
        return False

    def _places(self, partitions: Collection[int]) -> Mapping[int, int]:
        """The offsets at which partitions go on, as the target has them."""
        self._check_topic()
        found = self._until_done(lambda: self.target.offsets(partitions))
        self._landed = {partition: found.get(partition, 0) for partition in partitions}
        return found

    def _check_topic(self) -> None:
        """Raises TopicReplaced where the topic is gone, or another one has its name. A broker that is away says nothing."""
        with suppress(KafkaError):
            if not self._is_there():
                raise TopicReplaced(f"topic {self.topic.name} is another one now")

    def _is_there(self) -> bool:
        now = self.look()
        return now is not None and now.id == self.topic.id

    def _begin_topic(self) -> None:
        """Waits for a topic of this name, and lets the target begin it."""
        while (topic := self._look()) is None:
            if self.once:
                raise LandingError(f"there is no topic {self.topic.name} any more: a job creates it when it starts")
            if self.stopping.wait(uniform(0.1, 1)):
                raise Stopped("stopped on request")
        self.troubles.end(TOPIC)
        opened = self._until_done(lambda: self.target.open(topic))
        self.topic, self.earlier = topic, opened.earlier
        self.goal, self.shown, self._ahead = self.ends(), False, Counter()
        if self.earlier:
            self._say_earlier()

    def _look(self) -> LandedTopic | None:
        cure = "a job creates it when it starts; the landing continues by itself"
        try:
            topic = self.look()
        except KafkaError as error:
            self.troubles.begin(TOPIC, str(error), "start the broker, or wait; the landing continues by itself")
            return None
        if topic is None:
            self.troubles.begin(TOPIC, f"there is no topic {self.topic.name} any more", cure)
        return topic

    def _say_earlier(self) -> None:
        text = (
            f"topic {self.topic.name} was deleted and created again: it lands from its first message. {self.target.place} "
            "keeps each earlier document until its key has a message, and drops the others when the landing has caught up "
            f"with the topic; `statestore republish {self.product}` publishes all documents"
        )
        self.report(JobEvent(what="replaced", text=text, level="warning"))

    def _land(self, reader: GroupReader, reading: TopicPortion) -> None:
        self._heard_at = monotonic()
        self.troubles.end(KAFKA)
        self._check_offsets()
        messages = self._messages(reading)
        self.tally += self._until_done(lambda: self.target.land(messages, reading.ends))
        self._landed |= reading.ends
        self.behind, self.landed_at = reader.behind(), time()
        reader.show(reading.ends, landing_note(self.product, self.target.place, self.landed_at))

    def _messages(self, reading: TopicPortion) -> list[LandedMessage]:
        """The messages of the product; notes the first other one since the last line about it."""
        messages = []
        for record in reading.records:
            if message := read_message(record, self.product):
                messages.append(message)
            elif (dict(record.headers).get(PRODUCT_HEADER) or b"").decode(errors="replace") not in self.others:
                self.tally["foreign"] += 1
                at = f"{record.topic}/{record.partition}/{record.offset}"
                self._foreign = self._foreign or f"{at}: {why_foreign(record, self.product)}"
        return messages

    def _check_offsets(self) -> None:
        """Raises TargetWentBack where the target has an earlier offset than this process landed."""
        held = self._until_done(lambda: self.target.offsets(self._landed))
        if any(held.get(partition, 0) < offset for partition, offset in self._landed.items()):
            raise TargetWentBack

    def _check_group(self, reader: GroupReader) -> None:
        """Raises LandingError where another process of the group lands partitions in another place."""
        try:
            shown = reader.shown()
        except KafkaError:
            return  # the broker is away: nothing lands
        held = self._until_done(lambda: self.target.offsets(shown))
        ahead = {(one, held.get(one, 0)) for one, offset in shown.items() if offset > held.get(one, 0)}
        ahead = {(one, at) for one, at in ahead if one not in self._landed}
        self._ahead = Counter({place: self._ahead[place] + 1 for place in ahead})
        if elsewhere := sorted(one for (one, _), looks in self._ahead.items() if looks >= FOREIGN_LOOKS):
            raise LandingError(
                f"another process lands partitions {', '.join(map(str, elsewhere))} of {self.topic.name} in a copy of "
                f"{self.target.place}: both have the same id. Stop this one, give the copy an id of its own with --new-id, "
                "and start it again"
            )

    def _show(self) -> bool:
        """Whether all has landed that the topic held at the start. Then readers see it, where they have not seen it yet."""
        landed = self._until_done(lambda: self.target.offsets(self.goal))
        if any(landed.get(partition, -1) < end for partition, end in self.goal.items()):
            return False
        if self.earlier and any(self.goal.values()):  # an empty topic removes nothing
            count = self._until_done(self.target.forget_earlier)
            text = (
                f"{count:,} documents of the earlier topic {self.topic.name} had no message in this one, and are gone"
            )
            self.report(JobEvent(what="forgotten", text=text, level="warning", fields={"documents": count}))
            self.earlier = False
        waiting = self._until_done(self.target.show)
        if waiting != self._waiting:
            state = f"readers do not see it yet: {waiting}" if waiting else "readers see it"
            self.report(JobEvent(what="complete", text=f"{self.target.place} is complete, and {state}"))
        self.shown, self._waiting = not waiting, waiting
        return True

    def _ask(self, reader: GroupReader) -> None:
        """Asks the broker for an answer, where it was silent for a while: its client reports no broker that is away."""
        if monotonic() - self._heard_at < ASK_SECONDS:
            return
        try:
            reader.ask()
        except KafkaError as error:
            self.troubles.begin(KAFKA, str(error), "start the broker, or wait; the landing continues by itself")
        else:
            self.troubles.end(KAFKA)
        self._heard_at = monotonic()

    def _until_done(self, work: Callable[[], _T]) -> _T:
        """Does the work, again while the target is away. Raises Stopped where a signal ends the landing meanwhile."""
        pause = 0.1
        while True:
            try:
                done = work()
            except TargetAway as error:
                self.troubles.begin(error.part, str(error), error.cure)
            else:
                self.troubles.end("target")
                return done
            if self.stopping.wait(uniform(0, pause)):
                raise Stopped("stopped on request")
            pause = min(2 * pause, PAUSE_SECONDS)

    def _say(self, reader: GroupReader) -> None:
        """Says now and then what landed meanwhile, shows it to readers, and looks whether topic and group are still the same."""
        seconds = monotonic() - self._said_at
        if seconds < SAY_SECONDS:
            return
        if not self.once and (self.earlier or not self.shown):
            self._show()
        if self.earlier:
            with suppress(KafkaError):
                self.goal = self.ends()
        if new := self.tally - self._said:
            rate = (new["landed"] + new["deleted"]) / seconds
            text = f"{landed_text(new)}; {rate:,.0f} documents/s, {self.behind:,} messages behind"
            fields = {**new, "behind": self.behind, "per_second": round(rate, 1)}
            self.report(JobEvent(what="landed", text=text, fields=fields))
        self.say_foreign()
        self._said, self._said_at = self.tally.copy(), monotonic()
        self._tell_registry()
        self._check_topic()
        self._check_offsets()
        self._check_group(reader)

    def say_foreign(self) -> None:
        """Names one of the messages that this process passed over since the last line about them."""
        if self._foreign:
            text = f"passed over messages that no job of {self.product} published, such as {self._foreign}"
            self.report(JobEvent(what="foreign", text=text, level="warning"))
            self._foreign = ""

    def _tell_registry(self) -> None:
        if monotonic() - self._noted_at < NOTE_SECONDS:
            return
        try:
            self.note()
        except RegistryError as error:
            self.troubles.begin(REGISTRY, str(error), "documents land meanwhile")
        else:
            self.troubles.end(REGISTRY)
        self._noted_at = monotonic()


def landed_text(counts: Mapping[str, int]) -> str:
    """The counts of a landing, for people."""
    parts = [f"{counts.get('landed', 0):,} documents landed", f"{counts.get('deleted', 0):,} deleted"]
    more = {
        "refused": "refused by the target",
        "foreign": "messages left out that no job of the product published",
        "later": "of a later version of the product: start `land` for it",
    }
    return ", ".join(parts + [f"{counts[name]:,} {words}" for name, words in more.items() if counts.get(name)])


def landing_state(landing: Landing) -> Callable[[], RunState]:
    """Reads the state of a landing that runs."""

    def read() -> RunState:
        now = time()
        troubles = landing.troubles.now
        report = {
            "product": landing.product,
            "place": landing.target.place,
            "behind": landing.behind,
            "landed_at": landing.landed_at,
            "at": now,
            "counts": dict(landing.tally),
            "troubles": [one.part for one in troubles],
        }
        return RunState(report, (), tuple(trouble_line(one, now) for one in troubles))

    return read


def _page(report: Mapping[str, Any] | None, wrong: Sequence[str], degraded: Sequence[str]) -> str:
    state = report or {}
    lines = [f"landing of {state['product']} in {state['place']}", landed_text(state["counts"])]
    lines += [f"{state['behind']:,} messages behind", *wrong, *(f"degraded: {line}" for line in degraded)]
    return f"<!doctype html><title>statestore land</title><pre>{escape(chr(10).join(lines))}</pre>\n"


def _metrics(report: Mapping[str, Any]) -> bytes:
    return metrics_text(LANDING_METRICS, read_metrics(report, LANDING_METRICS))


LANDING_PAGES = Pages(_page, _metrics)


PREFIX: Final = "statestore-land-"


class LandingState(NamedTuple):
    """A landing. `landed_at`: when it landed a batch last, in seconds since 1970; `behind`: messages that have not landed; both
    None where the broker does not know; `processes`: how many run. `id`: empty for a landing that no registry knows, of an
    earlier release. `seen_at`: when the registry had a sign of it last."""

    product: str
    place: str
    landed_at: float | None
    topic: str
    behind: int | None
    processes: int
    id: str = ""
    seen_at: float | None = None


def group_of(product: str, id_: str) -> str:
    """The group of all processes of a landing. `id_`: of the landing, so that no two landings share a group."""
    return f"{PREFIX}{product}-{id_}"


def landing_note(product: str, place: str, now: float) -> str:
    """The note that a landing stores with its offsets. The broker takes at most 4,096 bytes."""
    return orjson.dumps({"product": product, "place": place[:1_000], "landed_at": now}).decode()


def landing_states(known: Iterable[KnownLanding], bootstrap: str, extra: Mapping[str, str]) -> list[LandingState]:
    """The landings that the registry knows, and those of earlier releases that the broker knows. Without the address of a
    broker, only the registry is asked. Raises KafkaError."""
    return landings_of(known, group_states(bootstrap, extra, PREFIX) if bootstrap else ())


def landings_of(known: Iterable[KnownLanding], groups: Iterable[GroupState]) -> list[LandingState]:
    """The landings that the registry knows, each with its group, and then those of groups that it does not know. A group whose
    processes have landed nothing is no landing of an earlier release."""
    found = {group.name: group for group in groups}
    states = []
    for one in known:
        group = found.pop(group_of(one.product, one.id), None)
        seen_at, landed_at = one.seen_at.timestamp(), _last(group)["landed_at"] if group and group.notes else None
        behind, processes = (group.behind, group.members) if group else (None, 0)
        states.append(LandingState(one.product, one.place, landed_at, one.topic, behind, processes, one.id, seen_at))
    for group in found.values():
        if group.notes:
            note = _last(group)
            states.append(LandingState(**note, topic=group.topic, behind=group.behind, processes=group.members))
    return states


def _last(group: GroupState) -> dict[str, Any]:
    """The last note of a group."""
    notes: list[dict[str, Any]] = [orjson.loads(note) for note in group.notes]
    return max(notes, key=lambda note: float(note["landed_at"]))
