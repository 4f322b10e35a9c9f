"""Prices of DynamoDB's requests, and what a run did and spent by its counters.

The prices are those of one region here, and those on demand of other regions in a file (TOML):

region = "eu-west-1"
date = "2026-11"
write = 0.705          # dollars a million write request units
read = 0.141           # dollars a million read request units

What a run spent is a line of words; and of its last hour or day (`metrics.count_window`) its messages by product, its events by
topic, its request units with their price, and what it did for each product.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from processor.counts import BATCH, IN_TOPIC, REQUEST, STAGE, STAGES, Count
from processor.environment.settings.settings import read_toml
from processor.errors import SettingError
from processor.job.metrics.metrics import READS, WORK, WRITES, counts_after
from statestore.store import HALF_UNITS, RETRIES, THROTTLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars a million request units in a region, as of `date`."""

    region: str
    date: str
    write: Decimal
    read: Decimal

    def dollars(self, write_units: int | Decimal, read_units: Decimal) -> Decimal:
        """Dollars a million events, if one event takes these units."""
        return write_units * self.write + read_units * self.read


IMPORT: Final = Decimal("0.15")
"""Dollars a GB of uncompressed files that DynamoDB imports, in us-east-1. Nobody has read this price on a page of AWS."""
DEFAULT = Prices(region="us-east-1", date="2026-11", write=Decimal("0.625"), read=Decimal("0.125"))
_WRITE_HOUR, _READ_HOUR, _USED = Decimal("0.00065"), Decimal("0.00013"), Decimal("0.7")
"""Dollars an hour for provisioned capacity of a unit a second, and the part of it that a steady rate uses (docs/costs.md)."""


def _provisioned(discount: str) -> Prices:
    write, read = (hour * 1_000_000 / 3600 / _USED * (1 - Decimal(discount)) for hour in (_WRITE_HOUR, _READ_HOUR))
    return replace(DEFAULT, write=write, read=read)


BILLING: Final[Mapping[str, Prices]] = {
    "on demand": DEFAULT,
    "provisioned": _provisioned("0"),
    "reserved for a year": _provisioned("0.54"),
    "for three years": _provisioned("0.77"),
}
"""The prices of a million units by how AWS bills them."""
MONTH_SECONDS: Final = 730 * 3_600
LEAST_SECONDS: Final = 60.0
"""A shorter window of a run says nothing about a month."""


def read_prices(path: str) -> Prices:
    """Reads the prices of a file. Raises SettingError, which names the file and what is wrong."""
    try:
        table = read_toml(Path(path), parse_float=Decimal)
    except OSError as error:
        raise SettingError(f"the prices {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingError(f"the prices {path} are not TOML: {error}") from None
    if table.keys() != {"region", "date", "write", "read"}:
        raise SettingError(f"the prices {path} must have region, date, write and read, and nothing else")
    try:
        write, read = Decimal(table["write"]), Decimal(table["read"])
        if not (write.is_finite() and read.is_finite() and min(write, read) >= 0):
            raise ValueError
    except (InvalidOperation, TypeError, ValueError):
        raise SettingError(
            f"the prices {path}: write and read must be dollars a million units, such as 0.625"
        ) from None
    return Prices(region=str(table["region"]), date=str(table["date"]), write=write, read=read)


LAST_HOUR, LAST_DAY = "last_hour", "last_day"
APPLIED = f"{Count.APPLIED}{IN_TOPIC}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWindow:
    """A window of a run. `seconds`: its length, of a young run the whole run; `work`: by the words of WORK and product, empty
    where no release counted it; `events`: those applied, by topic; `written`, `read`: units, 0 in a store without units."""

    seconds: float
    work: Mapping[str, Mapping[str, float]]
    events: Mapping[str, int]
    written: Decimal
    read: Decimal
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests to the table, by name."""

    @property
    def in_month(self) -> float | None:
        """How often the window is in a month; None of a window that is too short to say something about a month."""
        return None if self.seconds < LEAST_SECONDS else MONTH_SECONDS / self.seconds

    def dollars(self, prices: Prices) -> Decimal:
        """The price of the units."""
        return prices.dollars(self.written, self.read) / 1_000_000

    def share(self, product: str, prices: Prices) -> Decimal:
        """The product's part of the price: of all writes as large as its part of the writes to the ledger, of all reads as its
        part of those for documents. In a report of an older release both are as large as its part of the messages."""
        write, read = self._part("writes", product), self._part("reads", product)
        return (write * self.written * prices.write + read * self.read * prices.read) / 1_000_000

    def _part(self, work: str, product: str) -> Decimal:
        done = self.work[work] or self.work["messages"]
        return Decimal(done.get(product, 0)) / Decimal(sum(done.values())) if done else Decimal(0)


def read_window(report: Mapping[str, Any], name: str) -> RunWindow | None:
    """The window of this name; None in the report of a release without windows."""
    if name not in report:
        return None
    counts: Mapping[str, int] = report[name]["counts"]
    return RunWindow(
        seconds=report[name]["seconds"],
        work={
            word: {product: count * unit for product, count in counts_after(prefix, counts).items()}
            for word, (prefix, unit) in WORK.items()
        },
        events=counts_after(APPLIED, counts),
        written=_units(WRITES, counts),
        read=_units(READS, counts),
        requests=counts_after(REQUEST, counts),
    )


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
