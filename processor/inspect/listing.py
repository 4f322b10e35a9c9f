"""Lists stored rows, and the keys of documents, a page at a time: a list reads at most as many items as its limit."""

from collections.abc import Iterable, Iterator, Sequence

from processor.inspect.stored_row import FormerTopics, origin_of
from processor.plan.declared_columns import declared_columns, undeclared_columns
from processor.plan.plan import EntityPlan
from processor.progress.ledger import NO_DOCUMENT, message_key, read_entry
from processor.records import canonical_json
from processor.records.record import Record
from processor.records.recorded_line import NO_TIMESTAMP
from statestore.item_attributes import key_of_item
from statestore.keys import Key
from statestore.store import Item, Page, Store


def page_of(store: Store, partitions: Sequence[str], after: Key | None, limit: int) -> Page:
    """At most `limit` items of these partitions, one partition after the other, strongly consistent. Starts behind `after`."""
    items: list[Item] = []
    begin = partitions.index(after.pk) if after is not None else 0
    for partition in partitions[begin:]:
        place = after if after is not None and after.pk == partition else None
        while True:
            page = store.page(partition, place, limit - len(items))
            items += page.items
            if len(items) >= limit:
                return Page(items, key_of_item(items[-1]))
            if page.after is None:
                break
            place = page.after
    return Page(items, None)


def recorded_rows(items: Iterable[Item], entity: EntityPlan, topics: FormerTopics) -> Iterator[Record]:
    """The rows as plain records of their topics, without deleted rows. A row keeps no timestamp."""
    for item in items:
        columns = declared_columns(item, entity)
        if columns is not None:
            origin = origin_of(item, entity, topics)
            yield Record(
                topic=origin.topic,
                partition=origin.partition,
                offset=origin.offset,
                timestamp=NO_TIMESTAMP,
                key=canonical_json.encode({name: columns[name] for name in entity.entity.key}),
                value=canonical_json.encode({**columns, **undeclared_columns(item, entity)}),
            )


def document_keys(items: Iterable[Item], number: int) -> Iterator[str]:
    """The keys of the roots that have a document of the product with this number, by the items of its ledger group."""
    for item in items:
        entry = read_entry(item, number)
        if entry.mark is not None and entry.hash != NO_DOCUMENT:
            yield message_key(item)
