"""The net change of a key equals the end of a read of the whole partition."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.engine.protocol.decode import dedupe
from processor.values.record import UNAVAILABLE, Change, Record

VALUES = st.sampled_from([UNAVAILABLE, None, "a", "b"])
ROWS = st.none() | st.fixed_dictionaries({"x": VALUES, "y": VALUES})


def change(offset: int, key: str, row: Mapping[str, Any] | None) -> Change:
    record = Record(topic="star", partition=0, offset=offset, key=b"", value=b"")
    return Change(entity="star", key=(key,), row=row, record=record)


def last_rows(changes: list[Change]) -> dict[tuple[Any, ...], dict[str, Any] | None]:
    """Each key's row after all changes in the order of offsets. Values that no change sent are unavailable, and null after a
    delete."""
    rows: dict[tuple[Any, ...], dict[str, Any] | None] = {}
    for c in sorted(changes, key=lambda c: c.record.offset):
        before = rows.get(c.key) or {}
        unsent = None if c.key in rows and rows[c.key] is None else UNAVAILABLE
        rows[c.key] = (
            None
            if c.row is None
            else {name: before.get(name, unsent) if v is UNAVAILABLE else v for name, v in c.row.items()}
        )
    return rows


@given(st.lists(st.tuples(st.sampled_from("kl"), ROWS), max_size=8), st.randoms(use_true_random=False))
def test_the_net_change_equals_the_last_row_in_any_order_and_after_any_repeats(
    drawn: list[tuple[str, Any]], random: Any
) -> None:
    changes = [change(offset, key, row) for offset, (key, row) in enumerate(drawn)]
    read = changes + [random.choice(changes) for _ in range(3 if changes else 0)]
    random.shuffle(read)

    nets = dedupe(read)
    assert {n.change.key: n.change.row for n in nets} == last_rows(changes)
    last = {c.key: c.record.offset for c in changes}
    assert {n.change.key: n.change.record.offset for n in nets} == last
    assert sum(len(n.changes) for n in nets) == len(read)
