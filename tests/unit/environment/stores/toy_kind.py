"""A kind of store that the product does not know: tables in the memory of this process."""

from collections import defaultdict
from typing import Any

from processor.environment.programs.program import EmbeddedPart
from processor.environment.stores.kind import EmbeddedStore, StoreAddresses, StoreChecks, StoreKind, TableSettings
from processor.finding import DoctorCheck, ok
from statestore.memory import MemoryStore
from statestore.table import TableState, slot_names

TABLES: dict[str, MemoryStore] = defaultdict(lambda: MemoryStore(None, consistent=True))
"""The tables by name."""


class ToyProbe:
    """Looks at a table in memory."""

    def __init__(self, settings: TableSettings) -> None:
        self._settings = settings

    def state(self) -> TableState | None:
        found = TABLES[self._settings.table].describe()
        if found is None:
            return None
        indexes = dict.fromkeys(slot_names(found.slots), "ACTIVE")
        return TableState(
            status="ACTIVE",
            slots=found.slots,
            misfits=(),
            indexes=indexes,
            expires_by="ttl",
            on_demand=True,
            protected=True,
            recoverable=True,
        )

    def colour(self) -> str:
        return "red"


def start_toy(directory: Any, **_: Any) -> EmbeddedPart:
    """The embedded part of the toy: nothing runs."""
    return EmbeddedPart(name="Toy", endpoint=f"toy://{directory.name}", process=None)  # type: ignore[arg-type]


TOY: StoreKind[TableSettings] = StoreKind(
    name="toy",
    open=lambda settings, effort, fence: TABLES[settings.table],
    probe=ToyProbe,
    where=lambda settings: "the toy box",
    check=lambda settings: None,
    needed=(),
    checks=StoreChecks(
        way=(
            DoctorCheck(
                name="toy box", looks_at="the box", look=lambda around: [ok("the box is open")], cure="open the box"
            ),
        ),
        table=(
            DoctorCheck(
                name="colour",
                looks_at="the colour",
                look=lambda around: [ok(f"the table is {around.table.colour()}")],
                cure="paint the table",
                needs=("table",),
            ),
        ),
        cure="look into the box",
    ),
    addresses=StoreAddresses(
        schemes=("toy",), form="toy://TABLE", read=lambda url, query, settings: {"table": url.netloc}
    ),
    embedded=EmbeddedStore(
        title="Toy (embedded)",
        part="toy",
        start=start_toy,
        settings=lambda settings, registry, endpoint: {},
        environment={"TOY_KEY": "embedded"},
    ),
    expiry="the toy removes it at night",
    remains=(("toy box", "the former row in the box", "you empty the box"),),
)
