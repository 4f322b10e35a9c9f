"""The protections of rows in two partitions, several rows in one record, products that fail, forms of decimals, two runs at the
same replay, and a table that loses writes."""

from collections.abc import Iterator
from dataclasses import replace

from tests.simulator.lost_writes import OVERRIDES as LOST
from tests.simulator.protection import Protection, protection
from tests.simulator.settled_forms import OVERRIDES as PRICES
from tests.simulator.several_rows import OVERRIDES as SEVERAL
from tests.simulator.shared_topic import OVERRIDES as SHARED
from tests.simulator.stray_changes import OVERRIDES as STRAYS
from tests.simulator.without import (
    backlog,
    forms,
    live_replays,
    lost_writes,
    publisher,
    routes,
    several_rows,
    shared_topic,
    source_repairs,
    strays,
)
from tests.simulator.worlds import CALM, CRASHES, ZOMBIES


def other_protections() -> Iterator[Protection]:
    """Each with the kind of its runs."""
    yield replace(
        protection(
            "a write is conditional on the partition", "two partitions of one row", strays.any_partition, STRAYS
        ),
        kind="strays",
    )
    yield replace(
        protection(
            "a refused change of another partition is a dead letter",
            "two partitions of one row",
            strays.not_refused,
            STRAYS,
        ),
        kind="strays",
    )
    yield replace(
        protection(
            "a net change has one partition", "two partitions of one row", strays.dedupe_over_partitions, STRAYS
        ),
        kind="strays",
    )
    yield replace(
        protection(
            "a record has one change of each row",
            "two changes of a row with one version",
            several_rows.all_changes,
            {**CALM, **SEVERAL},
        ),
        kind="several rows",
    )
    yield replace(
        protection(
            "a replay notes the keys of each row alone",
            "a task that writes a row after its letter was replayed",
            several_rows.one_note,
            {**ZOMBIES, **SEVERAL, "many_moves": True},
        ),
        kind="several rows",
    )
    yield replace(
        protection(
            "the hash of a document has its headers",
            "a change of a header alone",
            routes.hash_of_the_value_alone,
            {**CALM, "shape": "github"},
        ),
        kind="routed messages",
    )
    yield replace(
        protection(
            "a moved document leaves a tombstone",
            "a document that moves to another partition",
            routes.no_tombstone_where_it_was,
            {**CALM, "shape": "pair"},
        ),
        kind="routed messages",
    )
    yield replace(
        protection(
            "the ledger keeps each place until a message is acknowledged",
            "a moved document whose message is lost",
            routes.newest_place_alone,
            {**ZOMBIES, "shape": "stars", "many_moves": True},
        ),
        kind="routed messages",
    )
    yield replace(
        protection(
            "the table of a record picks its entity",
            "a topic that entities share",
            shared_topic.first_entity,
            {**CALM, **SHARED},
        ),
        kind="shared topic",
    )
    yield replace(
        protection(
            "a null value deletes no row of another table",
            "a tombstone in a topic that entities share",
            shared_topic.null_deletes,
            {**CALM, **SHARED},
        ),
        kind="shared topic",
    )
    yield replace(
        protection(
            "the backlog is durable", "a crash between the failure of a product and the next start", backlog.not_durable
        ),
        kind="failing products",
    )
    yield replace(
        protection(
            "a run keeps its own backlog", "a zombie that removes roots which changed since", backlog.taken_as_own
        ),
        kind="failing products",
    )
    yield replace(
        protection(
            "a refused transaction acknowledges nothing",
            "a product that fails after its messages",
            publisher.any_attempt,
        ),
        kind="failing products",
    )
    yield replace(
        protection(
            "the backlog keeps the roots of a product that is not ready",
            "a start without its topic",
            backlog.not_durable,
        ),
        kind="unready products",
    )
    yield replace(
        protection(
            "a task reads decimals by the form in the table",
            "two tasks that read one column by two forms",
            forms.answer_ignored,
            {**CALM, "events": 14, "many_moves": True, "batch_records": 8, "slice_records": 100, **PRICES},
        ),
        kind="settled forms",
    )
    yield replace(
        protection(
            "the form is in the table before a row is",
            "two attempts of a batch that read one column by two forms",
            forms.after_the_round,
            {**CRASHES, "max_faults": 8, "checkpoint_loss_chance": 1.0, **PRICES},
        ),
        kind="settled forms",
    )
    yield replace(
        protection(
            "a repair comes directly behind the version that it repairs",
            "a later record of the row that the source repaired",
            source_repairs.newest_version,
            {"unavailable_chance": 0.0},
        ),
        kind="source repairs",
    )
    yield replace(
        protection(
            "a replay writes under the version seen",
            "two runs at the same replay",
            live_replays.any_version_seen,
            {**ZOMBIES, "unavailable_chance": 0.3},
        ),
        kind="live replays",
    )
    yield replace(
        protection(
            "a run takes the outcome of a replay that another run ended",
            "two runs at the same replay",
            live_replays.taken_again,
            CRASHES,
        ),
        kind="live replays",
    )
    yield replace(
        protection(
            "a round ends only after the end that the run knows",
            "a table that lost its last writes while the run works",
            lost_writes.unconditional_end,
            LOST,
        ),
        kind="lost writes",
    )
    yield replace(
        protection(
            "a round that wrote rows only records its end",
            "a table that lost rows without a document",
            lost_writes.ends_with_messages_only,
            {**CRASHES, **LOST},
        ),
        kind="lost writes",
    )
    yield replace(
        protection(
            "a start compares the table with the registry's mark",
            "a table that lost its last writes between two runs",
            lost_writes.no_mark,
            {**CRASHES, **LOST},
        ),
        kind="lost writes",
    )
