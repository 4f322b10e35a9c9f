"""The products: their list, and one product with its versions, its picture, its access paths, its schema and its definition."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from processor.engine.plan.planning import plan_of
from processor.language.product.document_type import document_schema
from processor.language.product.product import Definitions
from processor.language.product.sql_printer import product_sql
from processor.text import duration_text
from processor.tools.inspect.board import waits_for
from processor.tools.inspect.costs import ProductPrice, product_prices
from processor.tools.inspect.explain import explain
from processor.tools.inspect.price_list import Prices
from processor.tools.inspect.spending import LAST_DAY, LAST_HOUR, RunWindow, read_window
from processor.tools.web.catalogue.picture import lineage_picture
from processor.tools.web.catalogue.product import document_members, product_versions
from processor.tools.web.console.screen import ConsoleParts, Content, Screen, Visit, diff_rows, value_lines
from processor.tools.web.problem import LookUpProblem
from registry.edits.operations import completed
from registry.model import HistoryEntry, ProductEntry, Snapshot


def show_products(parts: ConsoleParts, _: Visit) -> Content:
    """The products with their states, work and prices; of each the rows of its root, where statistics counted them."""
    snapshot, statistics = parts.registry.snapshot(), parts.registry.statistics.last()
    rows = {one.entity: one.rows for one in statistics.entities} if statistics else {}
    names = sorted({one.name for one in (*snapshot.products, *snapshot.waiting)})
    report = next((job.report for job in parts.registry.jobs() if job.alive and job.report), None)
    hour, day = (read_window(report, name) if report else None for name in (LAST_HOUR, LAST_DAY))
    found = parts.known_prices() if names else None
    priced = {one.product: one for one in product_prices(found, parts.prices)} if found else {}
    return {
        "version": snapshot.version,
        "products": [
            {**_product(snapshot, name), **_price(priced.get(name)), **_work(name, hour, day, parts.prices)}
            for name in names
        ],
        "hour": duration_text(hour.seconds) if hour else None,
        "day": duration_text(day.seconds) if day else None,
        "roots": {one.root: rows.get(one.root) for one in (*snapshot.products, *snapshot.waiting)},
        "counted_at": statistics.taken_at.isoformat(timespec="seconds") if statistics else None,
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
        "entities": sorted(entry.entities()),
        "waits": f"version {waiting.version} waits for {', '.join(waits_for(snapshot, waiting))}" if waiting else "",
    }


def _price(price: ProductPrice | None) -> dict[str, float | None]:
    """The dollars of a million events."""
    return {"low": float(price.low) if price else None, "high": float(price.high) if price else None}


def _work(name: str, hour: RunWindow | None, day: RunWindow | None, prices: Prices) -> dict[str, float | None]:
    """The messages a second of the last hour, and the dollars of the last day; None where no job says it, or its store has no
    request units."""
    rate = hour.messages.get(name, 0) / hour.seconds if hour and hour.seconds else None
    metered = day is not None and day.dollars(prices) > 0
    return {
        "messages_per_second": None if rate is None else round(rate, 3),
        "dollars": float(day.share(name, prices)) if day and metered else None,
    }


def _entry(snapshot: Snapshot, name: str) -> ProductEntry:
    """The newest content of a product."""
    for one in (*snapshot.waiting, *snapshot.products):
        if one.name == name:
            return one
    known = ", ".join(sorted(one.name for one in (*snapshot.products, *snapshot.waiting))) or "none"
    raise LookUpProblem(404, f"there is no product `{name}`; there are {known}")


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
