"""What a run has spent, in words: its requests, their units and their price, and the time of its stages. Pure."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from processor.counts import BATCH, REQUEST, STAGE, STAGES
from processor.metrics.metrics import READS, WRITES
from processor.pricing.price_list import DEFAULT
from statestore.store import HALF_UNITS, RETRIES, THROTTLES


def spending_line(counts: Mapping[str, int]) -> str:
    """The requests of a run, their throttles and retries, their units with the price, and the time of its stages, in one line."""

    def total(prefix: str, names: Iterable[str]) -> int:
        return sum(counts.get(prefix + name, 0) for name in names)

    both = (*WRITES, *READS)
    times = ", ".join(f"{name} {counts.get(STAGE + name, 0) / 1000:,.1f} s" for name in (BATCH, *STAGES))
    requests = f"{total(REQUEST, both):,} requests ({throttled(counts):,} throttled, {total(RETRIES, both):,} retries)"
    written, read = total(HALF_UNITS, WRITES), total(HALF_UNITS, READS)
    return f"{requests}{_units(written, read) if written or read else ''}; {times}"


def throttled(counts: Mapping[str, int]) -> int:
    """How many answers of the store were throttles."""
    return sum(counts.get(THROTTLES + name, 0) for name in (*WRITES, *READS))


def _units(half_written: int, half_read: int) -> str:
    """The units of DynamoDB and their price. A table in Postgres has none."""
    dollars = DEFAULT.dollars(Decimal(half_written) / 2, Decimal(half_read) / 2) / 1_000_000
    price = f"${dollars:,.4f} on demand in {DEFAULT.region} ({DEFAULT.date})"
    return f", {half_written / 2:,.0f} write units, {half_read / 2:,.0f} read units, {price}"
