"""Whether registry, table and checkpoint belong together, and whether the table has all its writes. `protocol.identity` decides.

A first start writes the table's identity, then the registry's binding, then the checkpoint's identity. A crash between two of
these leaves a first start that can be repeated.

`find_lost_writes` looks whether the table or the registry went back to an earlier moment, before a run trusts them. It asks first
what others know of the table, then the table. So a run that still works is no false alarm.

`forget_progress` makes a table forget what its job remembers: of runs, open changes, walks, and published documents. A table that
was restored to an earlier moment, or whose registry is lost, keeps its rows and edges. Its progress is wrong: the topics of the
products have later messages than its ledger, and its walks follow earlier layouts. Truncates stay: no row says that the source
emptied its table. The forms of decimals stay too: the rows were read by them. So the ledger begins again with the documents that
the topics show, each of them invalid. The next run brings each row to the layouts of the registry, asks the indexes for it, and
publishes every document, or its tombstone, with a higher sequence.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.protocol.erasures import erasure_key, read_erasure
from processor.engine.protocol.identity import (
    IDENTITY,
    IDENTITY_FILE,
    SEQUENCES,
    TOPICS,
    TRACES,
    check_binding,
    check_readable,
    identity_in,
    is_restored,
    ledgers_in,
    lost_registry,
    read_published_topics,
    read_sequences,
    write_identity,
)
from processor.engine.protocol.ledger import (
    INVALIDATED,
    RUNS,
    LedgerEntry,
    Mark,
    Placed,
    ShownMessage,
    group_key,
    group_partition,
    later_run,
    lost_message,
    lost_round,
    read_entry,
    read_run,
    reserve,
    run_key,
)
from processor.engine.protocol.walks import PARTITION as WALKS
from processor.engine.protocol.walks import read_walk, write_walk
from processor.engine.rounds.events import JobEvent, Report
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import open_store
from processor.errors import OwnedByAnother, SettingError
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_tails, read_topic
from processor.job.run.checkpoint import Checkpoint
from processor.job.run.lease import fence_producers, take_table
from processor.language.product.document import key_of_root
from processor.values.record import Message, Record, read_sequence, sequence_of
from registry.errors import RegistryMissing
from registry.model import Binding, Lease
from registry.repository import Registry
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import Delete, FencingToken, Item, NoTable, Refused, ReportIndex, Store, StoreError, Write

CHUNK = 1_000
Messages = Callable[[str], Iterable[Message | Record]]
"""The messages of a topic; none if there is no such topic."""
NOBODY = Mark(0, 0, 0, 0)


def messages_in(settings: Settings) -> Messages:
    """The messages of the topics of a broker."""
    address, kafka = settings.bootstrap_servers, dict(settings.kafka)
    return lambda topic: read_topic(address, kafka, topic) if Admin(address, kafka).topics([topic]) else ()


def forget_progress(plan: Plan, store: Store, messages: Messages) -> None:
    """Deletes the progress, and last the identity, so that a call that broke off can be repeated. The ends of replays stay: a
    dropped dead letter stays dropped. Holds the message keys of a product in memory. `messages`: of the products' topics."""
    ledgers = sorted(ledgers_in(store.partition(SEQUENCES)))
    own = (*TRACES, SEQUENCES, TOPICS)
    for item in store.partition(WALKS):
        name, walk = read_walk(item)
        forgotten = write_walk(name, walk, 0)._replace(when=None)  # the next run has any number
        store.write(forgotten) if name[0] == "truncate" else store.delete(Delete(key=forgotten.key))
    for pk in (*ledgers, *own):
        _delete(store, pk)
    for product in plan.products.values():
        shown = shown_roots(plan, product, messages(product.product.topic))
        while chunk := list(islice(shown, CHUNK)):
            items = store.get([group_key(product.ledger, one.root) for one in chunk])
            store.write_all([invalid_entry(product, one, items, placed=_is_placed(product, one)) for one in chunk])
    _delete(store, IDENTITY.pk)


def _delete(store: Store, pk: str) -> None:
    """Deletes all items of a partition."""
    items = (Delete(key=key_of_item(item)) for item in store.items(pk))
    while chunk := list(islice(items, CHUNK)):
        store.write_all(chunk)


class ShownRoot(NamedTuple):
    """A root whose document a topic shows: its encoded key, its key as JSON, and the highest sequence of its messages.
    `partitions`: those that show one."""

    root: str
    key: str
    sequence: int
    partitions: tuple[int, ...]


def invalid_entry(product: ProductPlan, shown: ShownRoot, items: Mapping[Key, Item], *, placed: bool) -> Write:
    """An invalid entry for the document, in the ledger item that the product or others may have made already. `placed`: it names
    the partitions."""
    at = group_key(product.ledger, shown.root)
    item = items.get(at)
    entry = LedgerEntry(max(shown.sequence, read_entry(item, product.number).seq), INVALIDATED, NOBODY)
    places = {product.number: Placed(product.product.topic, shown.partitions)} if placed else {}
    return reserve(at, item, {product.number: entry}, shown.key, placed=places)


def _is_placed(product: ProductPlan, shown: ShownRoot) -> bool:
    return bool(product.product.partition_by) or len(shown.partitions) > 1


def shown_roots(plan: Plan, product: ProductPlan, messages: Iterable[Message | Record]) -> Iterator[ShownRoot]:
    """The roots whose documents the messages show."""
    shown: dict[str, dict[int, int]] = {}
    for message in messages:
        if (sequence := sequence_of(dict(message.headers))) is None:
            continue
        key = (message.key or b"").decode(errors="replace")
        places = shown.pop(key, {})
        places.pop(message.partition, None)
        if message.value is not None:
            places[message.partition] = sequence
        if places:
            shown[key] = places
    for key, places in shown.items():
        root = plan.root_of(product, key)
        if root is not None:
            of_root = key_of_root(product.product, key) or key
            yield ShownRoot(root, of_root, max(places.values()), tuple(places))


def find_lost_writes(settings: Settings, plan: Plan, registry: Registry, store: Store, report: Report) -> str:
    """What the table lacks; empty where nothing proves that. Reports forged messages. Raises OwnedByAnother where the registry is
    older than the table."""
    binding = registry.binding()
    if not binding.table:
        return ""
    try:
        if identity_in(store.get([IDENTITY]).get(IDENTITY)) != binding.identity:
            return ""  # the table of another registry, or none yet: `Parts.check` says more of that
        _check_registry(settings, registry, store)
        mark = registry.runs.mark()
        if mark.run and (lost := lost_round(mark, read_run(mark.run, store.get([key := run_key(mark.run)]).get(key)))):
            return lost
        return _lost_message(settings, plan, store, report)
    except NoTable:  # `Parts.check` says more of that
        return ""


def _check_registry(settings: Settings, registry: Registry, store: Store) -> None:
    seen = store.page(RUNS, run_key(registry.runs.mark().generation), 1).items
    for key in map(key_of_item, seen):
        if why := later_run(key, registry.runs.mark().generation):  # again: a run may have begun meanwhile
            raise OwnedByAnother(
                f"the registry {settings.registry_schema} went back to an earlier moment: {why}. A standby without its last "
                "writes took over, or a backup was restored. Restore a newer backup, or stop every job and make a new registry "
                "for the table: `statestore rebuild-registry --registry-is-lost` with another --registry-schema"
            )


def _lost_message(settings: Settings, plan: Plan, store: Store, report: Report) -> str:
    """The reason of the first message in the topics of the plan's products that proves a loss; empty without such a message.
    Reports messages outside of transactions that the table lacks: no job wrote them."""
    written, loose = _shown_messages(settings, plan)
    if lost := next(_lost_in(written, plan, store), None):
        return lost[1]
    unknown = list(_lost_in(loose, plan, store)) if loose else []
    proven = _own_topics(settings, plan, store) if unknown else frozenset[str]()
    forged: dict[str, list[ShownMessage]] = {}
    for one, why in unknown:
        if one.product not in proven:
            return why
        forged.setdefault(one.product, []).append(one)
    for product, some in forged.items():
        text = (
            f"product {product}: {len(some)} messages have the headers of a job, and no job wrote them: they are in no "
            f"transaction, and the table knows nothing of them. The first is at {some[0].at}, of key {some[0].root}. They count "
            "for nothing. No other program may write to the topic of a product; `statestore verify --repair` publishes the right "
            "documents again"
        )
        report(JobEvent(what="product topic", text=text, level="warning"))
    return ""


def _lost_in(messages: Iterable[ShownMessage], plan: Plan, store: Store) -> Iterator[tuple[ShownMessage, str]]:
    """The messages that the table should know and does not, each with the reason. A product that the table does not know yet has
    none."""
    sequences = read_sequences(store.partition(SEQUENCES))
    ledgers = {name: product.ledger for name, product in plan.products.items()}
    topics = {name: product.product.topic for name, product in plan.products.items()}
    known = {
        name: sequences[at]
        for name, ledger in ledgers.items()
        if (at := (name, group_partition(ledger), topics[name])) in sequences
    }
    shown = [one for one in messages if one.product in known]
    items = {one: group_key(ledgers[one.product], one.root) for one in shown}
    notes = {one: erasure_key(ledgers[one.product].root, one.root) for one in shown}
    found = store.get({*items.values(), *notes.values()}) if shown else {}
    for one in shown:
        number = ledgers[one.product].number
        erased = read_erasure(item).sequences.get(number, 0) if (item := found.get(notes[one])) else 0
        if lost := lost_message(one, read_entry(found.get(items[one]), number, known[one.product]), erased):
            yield one, lost


def _own_topics(settings: Settings, plan: Plan, store: Store) -> frozenset[str]:
    """The products whose topic is the one to which the table's job published, and no copy of it. A copy in another cluster has
    the messages of the job without its transactions."""
    noted = read_published_topics(store.partition(TOPICS))
    topics = {name: product.product.topic for name, product in plan.products.items()}
    present = Admin(settings.bootstrap_servers, dict(settings.kafka)).topics([*topics.values()])
    return frozenset(
        name
        for name, topic in topics.items()
        if name in noted and topic in present and (noted[name].topic, noted[name].id) == (topic, present[topic].id)
    )


def _shown_messages(settings: Settings, plan: Plan) -> tuple[list[ShownMessage], list[ShownMessage]]:
    """The last messages of each partition of the topics of the plan's products: those that a transaction may have written, and
    those outside of transactions. A message that the product's job cannot have written is no evidence."""
    topics = {product.product.topic for product in plan.products.values()}

    def shown(message: Record) -> ShownMessage | None:
        headers = dict(message.headers)
        sequence, key = sequence_of(headers), (message.key or b"").decode(errors="replace")
        name = (headers.get("statestore.product") or b"").decode(errors="replace")
        product = plan.products.get(name)
        if sequence is None or product is None or product.product.topic != message.topic:
            return None
        if (root := plan.root_of(product, key)) is None:
            return None
        versions = (("product_version", product.version), ("registry_version", plan.version))
        if sequence is None or root is None or headers["statestore.product"] != name.encode():
            return None
        if any(read_sequence(headers[f"statestore.{of}"]) not in range(1, most + 1) for of, most in versions):
            return None
        at = f"topic {message.topic}, partition {message.partition}, offset {message.offset}"
        return ShownMessage(name, root, sequence, at)

    servers, kafka = settings.bootstrap_servers, dict(settings.kafka)
    tails = read_tails(servers, kafka, topics, lambda record: bool(shown(record)))
    written = (shown(tail.last) for tail in tails if tail.last)
    loose = (shown(record) for tail in tails for record in tail.loose)
    return [one for one in written if one], [one for one in loose if one]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a job that belong together: its registry, its table, and its checkpoint."""

    settings: Settings
    registry: Registry
    store: Store
    checkpoint: Checkpoint | None = None
    """None where there is none, or as long as Spark has yet to start."""
    adopt: bool = False
    """As an operator asked for (`run --adopt`)."""
    lost: str = ""
    """What the table lacks, as `find_lost_writes` returns it."""

    def check(self) -> None:
        """Raises OwnedByAnother when the job's name, the table or the checkpoint does not belong to the registry, or the table
        lacks its last writes. Writes nothing."""
        table, restored = _identity(self.store)
        check_binding(
            self.registry.binding(),
            Binding(identity="", job=self.settings.job, table=self.settings.place),
            table=table,
            used=table == "" and any(map(self.store.partition, TRACES)),
            restored=restored,
            lost=self.lost,
            checkpoint=_checkpoint_identity(self.checkpoint),
            path=self.settings.checkpoint,
            adopt=self.adopt,
        )

    def take(self, plan: Plan, lease: Lease, report: Report) -> FencingToken:
        """Binds table and checkpoint to the registry, and creates the table where it is missing. Returns the right to write. The
        caller holds the lease, and has called `check`."""
        if altered := self.store.create(self.registry.snapshot().slots):
            report(JobEvent(what="table", text=altered))
        self.check()  # again, as the run before left the parts
        fence = take_table(self.registry, lease, self.store)  # before the first write
        if self.adopt:
            self.adopt_table(plan)
            fence = take_table(self.registry, lease, self.store)  # the registry may have a new identity
            replace(self, adopt=False, lost="").check()
        self.bind()
        fence_other_jobs(self.settings, self.registry)
        return fence

    def adopt_name(self, *, take_over: bool) -> None:
        """Makes the job's name the registry's."""
        job = self.registry.binding().job
        if job and job != self.settings.job:
            self.registry.rename_job(self.settings.job, take_over=take_over)

    def adopt_table(self, plan: Plan) -> None:
        """Lets the registry forget its table, in whose place the job uses an empty or a restored one, or the same without its
        last writes. A table with rows keeps them, and forgets its progress."""
        table, (identity, restored) = self.registry.binding().table, _identity(self.store)
        if table and identity and (table != self.settings.place or restored or self.lost):
            forget_progress(plan, self.store, messages_in(self.settings))
            identity = ""
        if table and not identity:
            self.registry.unbind_table()

    def bind(self) -> None:
        """Writes the identity where it is missing: into the table, and into the checkpoint."""
        settings, binding = self.settings, self.registry.binding()
        if not binding.table:
            written = self.store.write(write_identity(binding.identity, self.store.created))
            if isinstance(written, Refused) and identity_in(written.current) != binding.identity:
                raise OwnedByAnother(f"another job bound the table {settings.table} just now: start again")
        if (binding.job, binding.table) != (settings.job, settings.place):
            self.registry.bind(replace(binding, job=settings.job, table=settings.place))
        if self.checkpoint is not None and not self.checkpoint.began():
            self.checkpoint.write(IDENTITY_FILE, json.dumps({"id": binding.identity}))


def check_new_registry(settings: Settings, registry: Registry, budget: RetryBudget = RetryBudget.VERB) -> None:
    """Raises OwnedByAnother where there is no registry, but the table belongs to one: the registry is lost, or --registry or
    --registry-schema is mistyped. Writes nothing."""
    try:
        registry.binding()
    except RegistryMissing:
        with closing(open_store(settings, budget)) as store:
            identity, _ = _identity(store)
        if identity:
            raise OwnedByAnother(": ".join(lost_registry(settings.table, settings.registry_schema))) from None


def refuse_lost_registry(settings: Settings, registry: Registry) -> None:
    """Raises OwnedByAnother as `check_new_registry` does, for a verb that needs no table. A table that does not answer is
    no error."""
    with suppress(StoreError, SettingError):
        check_new_registry(settings, registry, RetryBudget.LOOK_UP)


@contextmanager
def readable_store(settings: Settings, registry: Registry) -> Iterator[Store]:
    """The table's store inside the block, for a verb that reads rows. Raises OwnedByAnother for rows of another registry."""
    with closing(open_store(settings)) as store:
        check_readable(registry.binding(), settings.place, _identity(store)[0])
        yield store


@contextmanager
def look_up_stores(settings: Settings, registry: Registry, count: int) -> Iterator[list[Store]]:
    """This many stores inside the block, for look-ups, which soon give up a silent store. Raises as `readable_store`."""
    with readable_store(settings, registry), ExitStack() as stack:
        yield [stack.enter_context(closing(open_store(settings, RetryBudget.LOOK_UP))) for _ in range(count)]


def widen_table(settings: Settings, registry: Registry, slots: int, progress: ReportIndex) -> None:
    """Gives the registry's table the indexes that it lacks. Does nothing where no start has created the table yet. Raises
    OwnedByAnother for a table of another registry."""
    with closing(open_store(settings)) as store:
        binding, (identity, _) = registry.binding(), _identity(store)
        if binding.table or identity:
            check_readable(binding, settings.place, identity)
        if identity is not None:
            store.add_slots(slots, progress)


def fence_other_jobs(settings: Settings, registry: Registry) -> None:
    """Fences the producers of jobs that ran by this registry under another name."""
    for job, lanes in registry.lanes_of_other_jobs(settings.job).items():
        fence_producers(replace(settings, job=job), lanes)


def _identity(store: Store) -> tuple[str | None, bool]:
    """The id in the table, and whether the table was restored, once `create` has looked. The id is empty for a table without one,
    None where there is no table."""
    try:
        item = store.get([IDENTITY]).get(IDENTITY)
    except NoTable:
        return None, False
    return identity_in(item), is_restored(item, store.created)


def _checkpoint_identity(checkpoint: Checkpoint | None) -> str | None:
    if checkpoint is None or not checkpoint.began():
        return None
    return str(json.loads(checkpoint.read(IDENTITY_FILE))["id"]) if checkpoint.exists(IDENTITY_FILE) else ""
