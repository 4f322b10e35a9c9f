"""Settles one open change: reads the row by key, and asks every slot of it whether the index shows the row.

The evidence is an index answer without overlay that holds the row at its version or newer, in every slot of the row.
Absence is no evidence, so a row without a key in a slot has its own `no_key` there. A row that is gone counts as shown.
The settle part then finds the touched roots again, and publishes them.
"""

from dataclasses import dataclass

from processor.plan.step import Lookup, Step
from processor.plan.touch import Touch
from processor.progress.open_changes import OpenChange, SettleOutcome
from statestore import keys
from statestore.item_attributes import key_of_item, version_of_item
from statestore.items import Row, read_row, slot_name
from statestore.store import Page, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledChange:
    """The outcome for an open change, and the touch to repeat."""

    outcome: SettleOutcome
    touch: Touch


class Evidence:
    """The index answers of a settle part, by lookup: which rows they show, at which version.

    Changes of one join key share a lookup. The evidence keeps each answer for all of them, so n changes of one key cost
    one answer of n rows, and not n of them. An old answer never proves too much: it shows versions that the index had.
    """

    def __init__(self) -> None:
        self._answers: dict[Lookup, tuple[Page, dict[str, str]]] = {}

    def add(self, lookup: Lookup, page: Page) -> None:
        """Takes the answer to a lookup, which the runner hands to every step that asked."""
        if lookup not in self._answers or self._answers[lookup][0] is not page:
            versions = {key_of_item(item).sk: version_of_item(item) for item in page.items}
            self._answers[lookup] = page, versions

    def shows(self, lookup: Lookup, row: Row) -> bool:
        """Whether the last answer to the lookup showed the row at its version or newer."""
        return lookup in self._answers and self._answers[lookup][1].get(row.key.sk, "") >= row.version


def settle(change: OpenChange, evidence: Evidence) -> Step[SettledChange]:
    """Looks whether the indexes show the row of `change`. The touch names every key that the row has or had."""
    (item,) = yield (change.key,)
    if item is None:
        row = Row(key=change.key, version=change.version, columns=None, more={}, slots={}, pending=())
        shown = True
    else:
        row = read_row(item)
        queries = [Query(slot=slot_name(k), value=key, row=change.key) for k, key in row.slots.items()]
        lookups = [Lookup(query, overlay=False) for query in queries]
        if unproven := tuple(lookup for lookup in lookups if not evidence.shows(lookup, row)):
            pages = yield unproven
            for lookup, page in zip(unproven, pages, strict=True):
                evidence.add(lookup, page)
        shown = all(evidence.shows(lookup, row) for lookup in lookups)
    earlier = (change.former | set(change.slots)) - {*row.slots.items(), *row.edges}
    former_keys = frozenset((slot, key) for slot, key in earlier if not keys.is_no_key(key))
    touch = Touch(entity=change.entity, row=row, former_keys=former_keys, changed=None, outcome="replayed")
    slots = tuple(sorted(row.slots.items())) or change.slots
    outcome = SettleOutcome(change=change, version=row.version, slots=slots, shown=shown)
    return SettledChange(outcome=outcome, touch=touch)
