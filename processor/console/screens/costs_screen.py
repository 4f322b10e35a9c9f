"""Costs: what the job's run has spent by request, with the month at its rate, and the prices of events by product and entity."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from processor.console.console_parts import ConsoleParts
from processor.console.screen import Content, Screen
from processor.console.visit import Visit
from processor.metrics.read_metrics import READS, WRITES
from processor.pricing.preview import Preview
from processor.pricing.price import BATCH
from processor.pricing.price_list import Prices
from processor.pricing.product_prices import estimated_dollars, product_prices
from processor.rounds.spending import REQUEST
from processor.wording.durations import DAY, duration_text
from statestore.store import HALF_UNITS

MONTH: Final = 30 * DAY
LEAST_SECONDS: Final = 60.0
"""A shorter run says nothing about a month."""
PURPOSES: Final = {
    "UpdateItem": "rows, ledger and open changes written",
    "DeleteItem": "notes that the job no longer needs deleted",
    "BatchGetItem": "rows and ledger read by key",
    "Query": "joins and partitions read",
}


def show_costs(parts: ConsoleParts, _: Visit) -> Content:
    """What runs have spent, and what events cost."""
    found, prices = parts.price_board(), parts.prices
    return {
        "version": found.version,
        "region": prices.region,
        "date": prices.date,
        "batch": BATCH,
        "counted_at": found.taken_at.isoformat(timespec="seconds") if found.taken_at else None,
        "products": [
            {"product": one.product, "low": float(one.low), "high": float(one.high), "reads": found.reads[one.product]}
            for one in product_prices(found, prices)
        ],
        "events": list(_events(found, prices)),
        "runs": [_run(job.report, prices) for job in parts.registry.jobs() if job.alive and job.report],
    }


def _events(found: Preview, prices: Prices) -> Iterator[dict[str, Any]]:
    """Each kind of event: by the statistics where there are some, else with one row for every join."""
    estimates = {(one.entity, one.event): one for one in found.estimates}
    for cost in found.costs:
        estimate = estimates.get((cost.entity, cost.event))
        dollars = (
            estimated_dollars(estimate, prices)
            if estimate
            else prices.dollars(cost.batch_write_units, cost.batch_read_units)
        )
        yield {
            "entity": cost.entity,
            "event": cost.event,
            "documents": round(estimate.documents, 2) if estimate else cost.documents,
            "write_units": float(estimate.write_units if estimate else cost.batch_write_units),
            "read_units": float(estimate.read_units if estimate else cost.batch_read_units),
            "dollars": float(dollars),
        }


def _run(report: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    """The requests of a run with their units, and the month at the rate of the run."""
    counts, seconds = report["counts"], report["at"] - report["began"]
    requests = [
        {
            "request": name,
            "purpose": PURPOSES[name],
            "count": counts.get(f"{REQUEST}{name}", 0),
            "units": counts.get(f"{HALF_UNITS}{name}", 0) / 2,
            "dollars": float(_dollars(name, counts, prices)),
        }
        for name in (*WRITES, *READS)
    ]
    dollars = sum(one["dollars"] for one in requests)
    return {
        "job": report["job"],
        "since": duration_text(seconds),
        "requests": requests,
        "metered": any(one["units"] for one in requests),
        "dollars": dollars,
        "month": dollars * MONTH / seconds if seconds >= LEAST_SECONDS else None,
        "events": counts.get("read", 0),
        "documents": counts.get("published", 0) + counts.get("corrections", 0),
    }


def _dollars(name: str, counts: Mapping[str, int], prices: Prices) -> Decimal:
    units = Decimal(counts.get(f"{HALF_UNITS}{name}", 0)) / 2
    none = Decimal(0)
    return (prices.dollars(units, none) if name in WRITES else prices.dollars(none, units)) / 1_000_000


COSTS = Screen(path="/costs", menu="Costs", template="costs.html", show=show_costs)
