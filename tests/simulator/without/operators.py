"""Switches for what operators do while the job runs: replays of dead letters, erasures, and moves to other topics."""

from dataclasses import replace

import processor.engine.protocol.epochs as epochs
import processor.engine.protocol.erasures as erase
import processor.engine.protocol.publish as publish
import processor.engine.protocol.replays as replays
import processor.engine.rounds.operators as operators
import processor.engine.rounds.write_stage as write_stage
import processor.job.run.topics as run_topics
import tests.simulator.moved_topics as moved_topics
from processor.engine.protocol.epochs import Epochs
from processor.engine.protocol.erasures import Erasure
from processor.engine.rounds.operators import Eraser
from statestore import writes
from statestore.items import read_row
from statestore.writes import merge_image
from tests.simulator.without.switch import always, replacing

no_fills = replacing((replays, "filled_image", always(None)))
"""A replay that is older than its row fills no columns."""

replay_without_former_keys = replacing(
    (replays, "open_change", lambda make: lambda entity, row, _: make(entity, row, frozenset()))
)
"""The open change of a replay has only the present keys of its row."""

no_list = replacing((write_stage, "split_erased", lambda _: lambda changes, *_: (list(changes), [])))
"""A task takes the records of erased rows."""

erasure_without_former_keys = replacing(
    (erase, "open_change", lambda make: lambda entity, row, _: make(entity, row, frozenset()))
)
"""The open change of an erasure has only the present keys of its row."""

marker_with_pending_keys = replacing(
    (erase, "write_bare_marker", lambda _: lambda marker, item: merge_image(marker, read_row(item)))
)
"""The marker of an erased row keeps its former keys."""

tombstones_not_kept = replacing((publish, "may_be_erased", always(False)))
"""An erasure removes the sequences of tombstones with the ledger entries."""

over_replays = replacing(
    (writes, "_committed", lambda committed: lambda since, below: replace(committed(since, below), lacks=""))
)
"""A first write also succeeds over a row that a replay wrote last."""

notes_not_erased = replacing((operators, "notes_of_row", always([])))
"""An erasure leaves the notes of replays alone."""

not_looked_at_again = replacing((Eraser, "is_back", always(False)))
"""An erasure ends without a look at its row."""

epochs_only = replacing((Erasure, "covers", lambda covers: lambda self, version, *_: covers(self, version)))
"""An erasure does not know the offsets of other incarnations."""

noted_ends_only = replacing(
    (Erasure, "covers", lambda covers: lambda self, version, topic: covers(self, version, topic._replace(ends={})))
)
"""An erasure does not learn that a broker has lost records."""

not_to_the_end = replacing((epochs, "is_read", always(True)))
"""The job leaves the former topic before it has read all of it."""

at_once = replacing((epochs, "has_begun", always(True)))
"""The job reads the next topic before the next topic has a record."""

same_epoch = replacing((moved_topics, "read_epochs", always(Epochs(steps={}))))
"""The epochs do not rise with a move."""

former_topic_not_left = replacing(
    (
        run_topics,
        "move_boundaries",
        lambda make: (
            lambda entity, former, topic, *rest: [b for b in make(entity, former, topic, *rest) if b.topic == topic]
        ),
    )
)
"""An entity whose move an operator ends early does not leave its former topic."""

from_the_first = replacing(
    (
        epochs,
        "first_offsets",
        lambda _: lambda entity, topic, topic_id, partitions, _: dict.fromkeys(partitions, 0),
    )
)
"""The job reads a topic that comes back from its first offset."""
