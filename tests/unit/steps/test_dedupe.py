"""A batch's changes of a key become the one that a reader of the whole partition would end with."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.model.change import UNAVAILABLE, Change, Record
from processor.steps.dedupe import dedupe

VALUES = st.sampled_from([UNAVAILABLE, None, "a", "b"])
ROWS = st.none() | st.fixed_dictionaries({"x": VALUES, "y": VALUES})


def change(offset: int, key: str, row: Mapping[str, Any] | None) -> Change:
    record = Record(topic="star", partition=0, offset=offset, key=b"", value=b"")
    return Change(entity="star", key=(key,), row=row, record=record)


def told(changes: list[Change]) -> dict[tuple[Any, ...], dict[str, Any] | None]:
    """Each key's row after all changes in the order of offsets, what was never sent left unavailable."""
    rows: dict[tuple[Any, ...], dict[str, Any] | None] = {}
    for one in sorted(changes, key=lambda c: c.record.offset):
        before = rows.get(one.key) or {}
        rows[one.key] = (
            None
            if one.row is None
            else {name: before.get(name, UNAVAILABLE) if v is UNAVAILABLE else v for name, v in one.row.items()}
        )
    return rows


@given(st.lists(st.tuples(st.sampled_from("kl"), ROWS), max_size=8), st.randoms(use_true_random=False))
def test_the_net_change_is_the_end_of_the_changes_in_any_order_and_read_any_number_of_times(
    drawn: list[tuple[str, Any]], random: Any
) -> None:
    changes = [change(offset, key, row) for offset, (key, row) in enumerate(drawn)]
    read = changes + [random.choice(changes) for _ in range(3 if changes else 0)]
    random.shuffle(read)

    nets = dedupe(read)
    assert {n.change.key: n.change.row for n in nets} == told(changes)
    last = {c.key: c.record.offset for c in changes}
    assert {n.change.key: n.change.record.offset for n in nets} == last
    assert sum(len(n.parts) for n in nets) == len(read)
