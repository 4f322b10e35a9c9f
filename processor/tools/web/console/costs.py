"""Costs: what the job's run has spent by request, with the month at its rate as AWS bills it, the prices of events by product and
entity, and what the registry would save without a product."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from processor.counts import REQUEST, Count
from processor.job.metrics.metrics import READS, WRITES
from processor.text import duration_text
from processor.tools.inspect.preview import Preview, estimated_dollars, product_prices, savings_without
from processor.tools.inspect.price import BATCH
from processor.tools.inspect.prices import BILLING, LAST_DAY, LAST_HOUR, MONTH_SECONDS, Prices, RunWindow, read_window
from processor.tools.web.console.screen import ConsoleParts, Content, Screen, Visit
from processor.tools.web.problem import LookUpProblem
from statestore.store import HALF_UNITS

LEAST_SECONDS: Final = 60.0
"""A shorter run says nothing about a month."""
PURPOSES: Final = {
    "UpdateItem": "rows, ledger and open changes written",
    "DeleteItem": "notes that the job no longer needs deleted",
    "BatchGetItem": "rows and ledger read by key",
    "Query": "joins and partitions read",
}


def show_costs(parts: ConsoleParts, visit: Visit) -> Content:
    """What runs have spent, what events cost, and what they would cost without a product that the address names."""
    found, prices, without = parts.event_prices(), parts.prices, visit.asked("without")
    reports = [job.report for job in parts.registry.jobs() if job.alive and job.report]
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
        "runs": [_run(report, prices) for report in reports],
        "saving": _saving(parts, found, without, reports) if without else None,
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
    return {
        "job": report["job"],
        "since": duration_text(seconds),
        "requests": requests,
        "metered": any(one["units"] for one in requests),
        "dollars": sum(one["dollars"] for one in requests),
        "month": _month(read_window(report, LAST_HOUR)),
        "events": counts.get(Count.READ, 0),
        "documents": counts.get(Count.PUBLISHED, 0) + counts.get(Count.CORRECTIONS, 0),
    }


def _month(window: RunWindow | None) -> dict[str, Any] | None:
    """A month at the rate of the window, by how AWS bills it."""
    if window is None or window.seconds < LEAST_SECONDS:
        return None
    times = Decimal(MONTH_SECONDS / window.seconds)
    return {
        "of": duration_text(window.seconds),
        "dollars": {name: float(window.dollars(prices) * times) for name, prices in BILLING.items()},
    }


def _saving(parts: ConsoleParts, found: Preview, name: str, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The savings without a product, by the entities that it reads; a month's, where a job runs, at the rate of its last day."""
    if name not in found.reads:
        raise LookUpProblem(404, f"there is no product `{name}`; there are {', '.join(sorted(found.reads))}")
    registry, window = parts.registry, next((read_window(one, LAST_DAY) for one in reports), None)
    stored = registry.snapshot()
    topics = {entity.name: entity.topic for entity in stored.entities}
    saved = savings_without(name, found, stored, parts.settings, registry.statistics.last(), parts.prices)
    known = window if window and window.seconds >= LEAST_SECONDS else None
    events = {one.entity: known.events.get(topics[one.entity], 0) if known else 0 for one in saved}
    dollars = sum((one.now - one.without) * events[one.entity] / 1_000_000 for one in saved)
    return {
        "product": name,
        "entities": [
            {"entity": one.entity, "now": float(one.now), "without": float(one.without), "events": events[one.entity]}
            for one in saved
        ],
        "of": duration_text(known.seconds) if known else None,
        "month": float(dollars * Decimal(MONTH_SECONDS / known.seconds)) if known else None,
    }


def _dollars(name: str, counts: Mapping[str, int], prices: Prices) -> Decimal:
    units = Decimal(counts.get(f"{HALF_UNITS}{name}", 0)) / 2
    none = Decimal(0)
    return (prices.dollars(units, none) if name in WRITES else prices.dollars(none, units)) / 1_000_000


COSTS = Screen(path="/costs", menu="Costs", template="costs.html", show=show_costs)
