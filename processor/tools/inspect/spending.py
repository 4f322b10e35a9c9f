"""What a run did and spent, from its counters: as a line of words, and of its last hour or day (`run.monitor`)
as messages by product, events by topic, and request units with their price. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from processor.counts import BATCH, IN_TOPIC, MESSAGES_OF, REQUEST, STAGE, STAGES, Count
from processor.job.metrics.metrics import READS, WRITES
from processor.tools.inspect.price_list import DEFAULT, Prices
from statestore.store import HALF_UNITS, RETRIES, THROTTLES

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


def spending_line(counts: Mapping[str, int]) -> str:
    """The requests of a run, their throttles and retries, their units with the price, and the time of its stages, in one line."""

    def total(prefix: str, names: Iterable[str]) -> int:
        return sum(counts.get(prefix + name, 0) for name in names)

    both = (*WRITES, *READS)
    times = ", ".join(f"{name} {counts.get(STAGE + name, 0) / 1000:,.1f} s" for name in (BATCH, *STAGES))
    requests = f"{total(REQUEST, both):,} requests ({throttled(counts):,} throttled, {total(RETRIES, both):,} retries)"
    written, read = total(HALF_UNITS, WRITES), total(HALF_UNITS, READS)
    return f"{requests}{_units_text(written, read) if written or read else ''}; {times}"


def throttled(counts: Mapping[str, int]) -> int:
    """How many answers of the store were throttles."""
    return sum(counts.get(THROTTLES + name, 0) for name in (*WRITES, *READS))


def _units_text(half_written: int, half_read: int) -> str:
    """The units of DynamoDB and their price. A table in Postgres has none."""
    dollars = DEFAULT.dollars(Decimal(half_written) / 2, Decimal(half_read) / 2) / 1_000_000
    price = f"${dollars:,.4f} on demand in {DEFAULT.region} ({DEFAULT.date})"
    return f", {half_written / 2:,.0f} write units, {half_read / 2:,.0f} read units, {price}"
