"""Writes and deletes the durable items of what a task leaves to later rounds: open changes
(`processor.engine.protocol.open_changes`), and roots that wait at gates (`processor.engine.protocol`)."""

from collections import Counter
from dataclasses import replace

from processor.counts import Count
from processor.engine.protocol.gate_items import Held, make_portions
from processor.engine.protocol.open_changes import OpenChanges
from processor.engine.protocol.segments import Segment
from processor.engine.rounds.round import Round, StageResult
from processor.language.product.product import OPEN
from statestore.errors import Terminal
from statestore.store import Delete, Store, TooLarge


def keep_segment(segment: Segment, store: Store) -> None:
    """Makes open changes durable."""
    if isinstance(store.write(segment.write()), TooLarge):
        pk = segment.change(0).key.pk
        raise Terminal(
            f"{pk}: the former keys of a row, whose changes are open, fill an item: wait W, then start again"
        )


def close_open_changes(changes: OpenChanges, store: Store, run: int, round_: int, now: float) -> None:
    """Closes the changes that the indexes have shown long enough; deletes and gathers their durable items."""
    unused = changes.close(now)
    if changes.fragmented():
        gathered = changes.gather(run, round_)
        for segment in gathered:
            keep_segment(segment, store)
        unused += changes.replace_left(gathered)
    for item in unused:
        store.delete(Delete(key=item))


def hold_back(result: StageResult, round_: Round, store: Store) -> StageResult:
    """The result of a first stage, without the roots that wait at the gates of their products. They are durable when it
    returns."""
    gated = {name for name, planned in round_.plan.products.items() if planned.gate != OPEN}
    if not gated:
        return replace(result, roots={**result.roots, **result.cleared}, cleared={}) if result.cleared else result
    held = Held(
        roots={root: time for root, time in result.roots.items() if root[0] in gated},
        seen=result.seen,
        unfound=frozenset(one.product for one in result.fan_outs if one.product in gated),
    )
    portions = tuple(make_portions(held, round_.run.number, round_.number, round_.date))
    for portion in portions:
        store.write(portion.write())
    free = {root: time for root, time in result.roots.items() if root[0] not in gated}
    tally = result.tally + Counter({Count.HELD: len(held.roots)})
    return replace(result, tally=tally, roots={**free, **result.cleared}, cleared={}, seen={}, held=portions)
