"""What a run did in its last hour or day, from its report (`processor.metrics.count_window`): messages by product, events by
topic, and request units with their price. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from processor.counts import IN_TOPIC, MESSAGES_OF, Count
from processor.metrics.metrics import READS, WRITES
from processor.pricing.price_list import Prices
from statestore.store import HALF_UNITS

LAST_HOUR, LAST_DAY = "last_hour", "last_day"
APPLIED = f"{Count.APPLIED}{IN_TOPIC}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWindow:
    """A window of a run. `seconds`: its length, of a young run the whole run; `messages`: by product; `events`: those applied, by
    topic; `written`, `read`: units, 0 in a store without units."""

    seconds: float
    messages: Mapping[str, int]
    events: Mapping[str, int]
    written: Decimal
    read: Decimal

    def dollars(self, prices: Prices) -> Decimal:
        """The price of the units."""
        return prices.dollars(self.written, self.read) / 1_000_000

    def share(self, product: str, prices: Prices) -> Decimal:
        """The product's part of the price, as large as its part of the messages."""
        all_messages = sum(self.messages.values())
        return self.dollars(prices) * self.messages.get(product, 0) / all_messages if all_messages else Decimal(0)


def read_window(report: Mapping[str, Any], name: str) -> RunWindow | None:
    """The window of this name; None in the report of a release without windows."""
    if name not in report:
        return None
    counts: Mapping[str, int] = report[name]["counts"]
    return RunWindow(
        seconds=report[name]["seconds"],
        messages=_after(MESSAGES_OF, counts),
        events=_after(APPLIED, counts),
        written=_units(WRITES, counts),
        read=_units(READS, counts),
    )


def _after(prefix: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}


def _units(names: tuple[str, ...], counts: Mapping[str, int]) -> Decimal:
    return Decimal(sum(counts.get(f"{HALF_UNITS}{name}", 0) for name in names)) / 2
