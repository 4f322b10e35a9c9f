"""The products: their list, and one product with its versions, its picture, its access paths, its schema and its definition.

Costs: what the job's run has spent by request, with the month at its rate as AWS bills it, the prices of events by product and
entity, and what the registry would save without a product.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal
from math import inf
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from processor.counts import REQUEST, STAGE, STAGES, Count
from processor.engine.plan.planning import plan_of
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.job.metrics.metrics import READS, WORK, WRITES
from processor.job.metrics.status import has_units
from processor.language.product.document_type import document_schema
from processor.language.product.product import Definitions
from processor.language.product.sql_printer import product_sql
from processor.text import duration_text
from processor.tools.inspect.board import waits_for
from processor.tools.inspect.explain import explain
from processor.tools.inspect.preview import (
    Preview,
    ProductPrice,
    event_prices,
    preview,
    product_prices,
    savings_without,
)
from processor.tools.inspect.price import BATCH
from processor.tools.inspect.prices import (
    BILLING,
    LAST_DAY,
    LAST_HOUR,
    Prices,
    RunWindow,
    read_window,
)
from processor.tools.web.answers import Cached, LookUpProblem, no_such
from processor.tools.web.catalogue.product import document_members, lineage_picture, product_versions
from processor.tools.web.console.screen import (
    ConsoleParts,
    Content,
    Screen,
    Visit,
    diff_rows,
    matches,
    time_of,
    value_lines,
)
from registry.edits.history import current_pauses
from registry.edits.operations import completed
from registry.errors import RegistryError
from registry.model import HistoryEntry, JobStatus, ProductEntry, Snapshot
from statestore.store import HALF_UNITS, StoreError

if TYPE_CHECKING:
    from registry.repository import Registry


class PriceCache:
    """The prices of the registry's events, as `statestore plan` computes them: once for each version and statistics."""

    def __init__(self, registry: "Registry", settings: Settings) -> None:
        self._registry, self._settings = registry, settings
        self._previews = Cached[Preview]()

    def known(self) -> Preview | None:
        """The last prices, perhaps of an earlier version: a thread computes the present ones. None before the first, and where
        there are none: `prices` says why."""
        self._previews.refresh(0.0, self._compute)
        return self._previews.last[1] if self._previews.last else None

    def prices(self) -> Preview:
        """A plan that changes nothing, with the price of each event. Raises PlanError for a registry without definitions."""
        stored, has_run = self._registry.snapshot_for_apply()
        statistics = self._registry.statistics.last()

        def read() -> Preview:
            plan = plan_of(completed(stored))
            products = {name: one.product for name, one in plan.products.items()}
            definitions = Definitions(entities=dict(plan.declared_entities), products=products)
            return preview(definitions, stored, has_run, self._settings, statistics)

        return self._previews.get(inf, read, (stored.version, statistics.taken_at if statistics else None))

    def _compute(self) -> None:
        with suppress(StatestoreError, RegistryError):
            self.prices()


class LivingRun(NamedTuple):
    """The report of the run that works, with its last hour and its last day; all None where no job reports."""

    report: Mapping[str, Any] | None
    hour: RunWindow | None
    day: RunWindow | None


def living_run(jobs: Iterable[JobStatus]) -> LivingRun:
    """The run of these jobs that works."""
    report = next((job.report for job in jobs if job.alive and job.report), None)
    return LivingRun(report, *(read_window(report, name) if report else None for name in (LAST_HOUR, LAST_DAY)))


def product_list(parts: ConsoleParts, snapshot: Snapshot, run: LivingRun) -> list[dict[str, Any]]:
    """The products by name, each with its state, since when it is paused, its lag, and its work as far as a job reports it."""
    some = (*snapshot.products, *snapshot.waiting)
    paused = current_pauses(snapshot, parts.registry.history()) if any(one.paused for one in some) else ()
    pauses = {one.name: one.text for one in paused if one.kind == "product"}
    topics = {entity.name: entity.topic for entity in snapshot.entities}
    names = sorted({one.name for one in some})
    return [
        {
            **(product := _product(snapshot, name)),
            **_lag(run.report, [topics[entity] for entity in product["entities"]]),
            **_work(name, run.hour, run.day, parts.prices),
            "stopped": (run.report or {}).get("stopped_products", {}).get(name, ""),
            "pause": pauses.get(name, ""),
        }
        for name in names
    ]


def _lag(report: Mapping[str, Any] | None, topics: Sequence[str]) -> dict[str, Any]:
    """The records that wait in these topics, and for how long the oldest does; None where no job or no broker says it."""
    lags = [report["topics"][topic] for topic in topics if topic in report["topics"]] if report else []
    if not lags or any(lag["records"] is None for lag in lags):
        return {"lag_records": None, "lag_seconds": None, "lag": "unknown" if report else "no job"}
    records, seconds = sum(lag["records"] for lag in lags), max(lag["seconds"] or 0.0 for lag in lags)
    text = f"{records:,} records, {duration_text(seconds)}" if records else "none"
    return {"lag_records": records, "lag_seconds": seconds, "lag": text}


def show_products(parts: ConsoleParts, visit: Visit) -> Content:
    """The products with their states, work and prices; of each the rows of its root, where statistics counted them."""
    snapshot, statistics = parts.registry.snapshot(), parts.registry.statistics.last()
    rows = {one.entity: one.rows for one in statistics.entities} if statistics else {}
    run, search = living_run(parts.registry.jobs()), visit.asked("q")
    products = product_list(parts, snapshot, run)
    found = parts.known_prices() if products else None
    priced = {one.product: one for one in product_prices(found, parts.prices)} if found else {}
    return {
        "version": snapshot.version,
        "q": search,
        "of": len(products),
        "products": [
            one | _price(priced.get(one["product"]))
            for one in products
            if matches(search, one["product"], one["topic"], one["state"], *one["entities"])
        ],
        "hour": duration_text(run.hour.seconds) if run.hour else None,
        "day": duration_text(run.day.seconds) if run.day else None,
        "roots": {one.root: rows.get(one.root) for one in (*snapshot.products, *snapshot.waiting)},
        "counted_at": time_of(statistics),
    }


def show_product(parts: ConsoleParts, visit: Visit) -> Content:
    """One product."""
    snapshot, name = parts.registry.snapshot(), visit.asked("product")
    entry = _entry(snapshot, name)
    plan = plan_of(completed(snapshot))
    chosen, entities = plan.products[name], plan.declared_entities
    product = chosen.product
    definitions = Definitions(entities={one: entities[one] for one in entities}, products={name: product})
    history = parts.registry.history()
    found = product_versions(snapshot, (), history, [name])[name]
    texts = dict(_definitions(history, name)) | {entry.version: entry.definition}
    return {
        **_product(snapshot, name),
        "versions": [{**asdict(one), "at": f"{one.at:%Y-%m-%d %H:%M:%S %Z}"} for one in found.versions],
        "states": list(found.states),
        "definition": value_lines(entry.definition),
        "diff": _diff(visit, texts),
        "picture": asdict(lineage_picture(product, document_members(product, definitions))),
        "paths": asdict(explain(plan, chosen)),
        "schema": value_lines(document_schema(product, entities)),
        "sql": product_sql(product, entities),
    }


def _product(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """A product in the list: of its live version, else of the one that waits."""
    live = next((one for one in snapshot.products if one.name == name), None)
    waiting = next((one for one in snapshot.waiting if one.name == name), None)
    entry = live or waiting
    assert entry is not None
    state = "waiting" if live is None else "leaving" if live.retracted else "paused" if live.paused else "live"
    return {
        "product": name,
        "version": entry.version,
        "state": state,
        "topic": entry.topic,
        "root": entry.root,
        "by": list(entry.by),
        "entities": sorted(entry.entities()),
        "waits": f"version {waiting.version} waits for {', '.join(waits_for(snapshot, waiting))}" if waiting else "",
    }


def _price(price: ProductPrice | None) -> dict[str, float | None]:
    """The dollars of a million events."""
    return {"low": float(price.low) if price else None, "high": float(price.high) if price else None}


def _work(name: str, hour: RunWindow | None, day: RunWindow | None, prices: Prices) -> dict[str, float | None]:
    """The messages a second of the last hour, the dollars of the last day, and those of a month at its rate; None where no job
    says it, or its store has no request units."""
    rate = hour.work["messages"].get(name, 0) / hour.seconds if hour and hour.seconds else None
    dollars = float(day.share(name, prices)) if day and day.dollars(prices) > 0 else None
    times = day.in_month if day else None
    return {
        "messages_per_second": None if rate is None else round(rate, 3),
        "dollars": dollars,
        "month": None if dollars is None or times is None else dollars * times,
    }


def _entry(snapshot: Snapshot, name: str) -> ProductEntry:
    """The newest content of a product."""
    for one in (*snapshot.waiting, *snapshot.products):
        if one.name == name:
            return one
    raise no_such("product", name, (one.name for one in (*snapshot.products, *snapshot.waiting)))


def _definitions(history: Sequence[HistoryEntry], name: str) -> Iterator[tuple[int, Any]]:
    """The definition of each version in the history."""
    for entry in history:
        for row in (entry.new, entry.old):
            if entry.entry in ("products", "waiting_products") and row and row["name"] == name:
                yield row["version"], row["definition"]


def _diff(visit: Visit, texts: dict[int, Any]) -> dict[str, Any] | None:
    """The difference between two versions: those that the address names, else the last two. None for a lone version."""
    if len(texts) < 2:
        return None
    *_, before, after = sorted(texts)
    one = visit.number("before") if visit.asked("before") else before
    other = visit.number("after") if visit.asked("after") else after
    if not {one, other} <= texts.keys():
        raise LookUpProblem(404, f"the history has the versions {', '.join(map(str, sorted(texts)))}")
    return {"before": one, "after": other, "of": sorted(texts), "diff": diff_rows(texts[one], texts[other])}


PRODUCTS = (
    Screen(path="/products", menu="Products", template="products.html", show=show_products),
    Screen(path="/products/product", menu="Products", template="product.html", show=show_product),
)

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
    hour = next((window for one in reports if (window := read_window(one, LAST_HOUR))), None)
    runs, search = [_run(report, prices) for report in reports], visit.asked("q")
    by_server = parts.settings.store == "postgres" and not any(run["metered"] for run in runs)
    rows = [
        {"product": one.product, "low": float(one.low), "high": float(one.high), "entities": found.reads[one.product]}
        | _done(one.product, hour, prices)
        for one in product_prices(found, prices)
    ]
    by = _ranking(visit, rows)
    return {
        "version": found.version,
        "region": prices.region,
        "date": prices.date,
        "batch": BATCH,
        "counted_at": time_of(found),
        "hour": duration_text(hour.seconds) if hour else None,
        "usage": _usage(parts) if by_server else None,
        "by": by,
        "columns": COLUMNS,
        "products": sorted(
            rows, key=lambda row: (-(row["done"][by] or 0), -(row["done"]["made"] or 0), row["product"])
        ),
        "events": [
            one._asdict() | {"dollars": float(one.dollars)}
            for one in event_prices(found.costs, found.estimates, prices)
            if matches(search, one.entity, one.event)
        ],
        "q": search,
        "runs": runs,
        "saving": _saving(parts, found, without, reports) if without else None,
        "roots": [one | {"units": has_units(report)} for report in reports for one in report.get("costly_roots", ())],
    }


COLUMNS: Final = {
    "dollars": "$",
    "made": "documents",
    "messages": "messages",
    "bytes": "bytes",
    "writes": "ledger writes",
    "reads": "reads",
    "seconds": "rendering",
}
"""What a product really did, by the words of WORK, and its dollars."""


def _done(name: str, hour: RunWindow | None, prices: Prices) -> dict[str, Any]:
    """What a run did for a product in its last hour, and what it does in a month at this rate. None where no job says it, or its
    release does not count it, or its store has no request units."""
    done: dict[str, float | None] = dict.fromkeys(COLUMNS)
    if hour is not None:
        done |= {word: round(counts.get(name, 0), 3) for word in WORK if (counts := hour.work[word])}
        if hour.dollars(prices) > 0:
            done["dollars"] = float(hour.share(name, prices))
    times = hour.in_month if hour else None
    month = {word: None if count is None or times is None else count * times for word, count in done.items()}
    return {"done": done, "month": month}


def _ranking(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> str:
    """The column that ranks the products: that of the address, else of the dollars, the time and the documents the first that is
    known."""
    asked = visit.asked("by")
    if asked and asked not in COLUMNS:
        raise no_such("column", asked, COLUMNS)
    known = [by for by in ("dollars", "seconds") if any(row["done"][by] for row in rows)]
    return asked or next(iter(known), "made")


def _usage(parts: ConsoleParts) -> dict[str, Any]:
    """What Postgres counts of the table, in words; `unknown`: why it says nothing."""
    try:
        found = parts.open_reader().usage()
    except (StatestoreError, StoreError, RegistryError) as error:
        return {"unknown": str(error), "facts": {}}
    if found is None:
        return {"unknown": "there is no table yet", "facts": {}}
    since = "since the server has it" if found.since is None else f"in {duration_text(time() - found.since)}"
    written = f"{found.inserted:,} inserted, {found.updated:,} updated, {found.deleted:,} deleted"
    disk = f"{size_text(found.bytes)} of rows, {size_text(found.index_bytes)} of indexes"
    time_spent = (
        "unknown: the server counts no CPU of a table, and `CREATE EXTENSION pg_stat_statements` counts the time"
    )
    if found.seconds is not None:
        time_spent = f"{duration_text(found.seconds)} for {found.calls:,} statements: CPU, and waits for the disk"
    facts = {
        "rows": f"about {found.rows:,} there; {since} {written}, {found.fetched:,} read",
        "bytes": f"{disk}; {size_text(found.read_bytes)} read from outside the server's memory {since}",
        "time of statements": time_spent,
    }
    return {"unknown": "", "facts": facts}


def size_text(count: int) -> str:
    """Bytes in their largest unit."""
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size:
            return f"{count / size:,.1f} {name}"
    return f"{count} bytes"


def _run(report: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    """The requests of a run with their units, and the month at the rate of the run."""
    counts, seconds, hour = report["counts"], report["at"] - report["began"], read_window(report, LAST_HOUR)
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
        "month": _month(hour),
        "month_work": _month_work(hour),
        "task_seconds": duration_text(sum(counts.get(f"{STAGE}{stage}", 0) for stage in STAGES) / 1000),
        "events": counts.get(Count.READ, 0),
        "documents": counts.get(Count.PUBLISHED, 0) + counts.get(Count.CORRECTIONS, 0),
    }


def _month(window: RunWindow | None) -> dict[str, Any] | None:
    """A month at the rate of the window, by how AWS bills it."""
    if window is None or (times := window.in_month) is None:
        return None
    return {
        "of": duration_text(window.seconds),
        "dollars": {name: float(window.dollars(prices) * Decimal(times)) for name, prices in BILLING.items()},
    }


def _month_work(window: RunWindow | None) -> dict[str, Any] | None:
    """What a month at the rate of the window does: events, messages and requests to the table."""
    if window is None or (times := window.in_month) is None:
        return None
    sums = {"events": window.events, "messages": window.work["messages"], "requests to the table": window.requests}
    return {
        "of": duration_text(window.seconds),
        "sums": {name: round(sum(of.values()) * times) for name, of in sums.items() if of},
    }


def _saving(parts: ConsoleParts, found: Preview, name: str, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The savings without a product, by the entities that it reads; a month's, where a job runs, at the rate of its last day."""
    if name not in found.reads:
        raise no_such("product", name, found.reads)
    registry, window = parts.registry, next((read_window(one, LAST_DAY) for one in reports), None)
    stored = registry.snapshot()
    topics = {entity.name: entity.topic for entity in stored.entities}
    saved = savings_without(name, found, stored, parts.settings, registry.statistics.last(), parts.prices)
    times = window.in_month if window else None
    known = window if times is not None else None
    events = {one.entity: known.events.get(topics[one.entity], 0) if known else 0 for one in saved}
    dollars = sum((one.now - one.without) * events[one.entity] / 1_000_000 for one in saved)
    return {
        "product": name,
        "entities": [
            {"entity": one.entity, "now": float(one.now), "without": float(one.without), "events": events[one.entity]}
            for one in saved
        ],
        "of": duration_text(known.seconds) if known else None,
        "month": None if times is None else float(dollars * Decimal(times)),
    }


def _dollars(name: str, counts: Mapping[str, int], prices: Prices) -> Decimal:
    units = Decimal(counts.get(f"{HALF_UNITS}{name}", 0)) / 2
    none = Decimal(0)
    return (prices.dollars(units, none) if name in WRITES else prices.dollars(none, units)) / 1_000_000


COSTS = Screen(path="/costs", menu="Costs", template="costs.html", show=show_costs)
