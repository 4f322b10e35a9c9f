"""`statestore verify`: compares published documents with the state, and with --sql also with the answer of the product's SQL over
the rows of the state. With --repair it publishes again the documents that differ from the state. With --source it
compares rows with the source database (`processor.cli.source`)."""

import argparse
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial, reduce
from operator import getitem
from random import Random
from time import sleep
from uuid import uuid4

from processor.cli.choices import chosen_seed, stored_state
from processor.cli.options import KAFKA, REGISTRY, TABLE, print_progress, reachable_settings, require_settings
from processor.cli.printing.output import UNFIT_LINE, coloured, warn
from processor.cli.source import SOURCE_FLAGS, run_source
from processor.cli.verb import JSON, OPERATORS, SEED, flag, positive, verb
from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import product_of
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.settings.resolve import open_registry, resolve_schema_registry
from processor.environment.settings.settings import Settings, owner_name
from processor.errors import SettingError
from processor.text import shortened, visible_line, visible_lines
from processor.tools.inspect.verification import (
    Difference,
    Mirror,
    TopicReader,
    VerificationResult,
    Verifier,
    with_open_changes,
)
from processor.values import canonical_json
from processor.values.record import Value
from statestore.store import Store


@verb(
    "verify",
    OPERATORS,
    flag("products", "products to compare, with --source entities (all)", "PRODUCT", nargs="*"),
    flag("--sample", "compare N documents of each product (default: all)", "N", type=positive),
    SEED,
    flag(
        "--sql",
        "compare with the answer of the product's SQL too, over copies of all rows in the registry's Postgres. Documents of a "
        "row that Postgres cannot hold are named, with exit status 1",
    ),
    flag("--repair", "publish again what differs from the state, while no job runs; with --source write rows"),
    JSON,
    *SOURCE_FLAGS,
    settings=(*REGISTRY, *TABLE, *KAFKA),
)
def verify(options: argparse.Namespace) -> int:
    """Compare published documents with the state, and show those that differ."""
    return run_source(options) if options.source else _run_documents(options)


def _run_documents(options: argparse.Namespace) -> int:
    seed = chosen_seed(options)
    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        with stored_state(settings) as (plan, store):
            names = options.products or list(plan.products)
            random = Random(seed)
            with _verifier(settings, plan, store, options.sql) as verifier:
                verified = {name: _verify_product(verifier, settings, name, options.sample, random) for name in names}
            differences = [difference for result in verified.values() for difference in result.differences]
            not_compared = [document for result in verified.values() for document in result.not_compared]
            unfit = unfit_among(plan, store, differences)
            repaired = _repair(settings, plan, store, differences) if options.repair else 0
    if options.json:
        found = _json(verified, repaired, options.sql)
        print(visible_line(canonical_json.dumps(found | ({"seed": seed} if options.sample else {}))))
    else:
        for line in difference_lines(differences, options.sql):
            print(line)
        warn(*(f"{difference.product} {difference.key}: {UNFIT_LINE}" for difference in unfit))
        for document in not_compared:
            print(visible_lines([f"{document.product} {document.key}", f"  not compared with SQL: {document.reason}"]))
        for name, result in verified.items():
            without = f", {len(result.not_compared)} of them not with SQL" if result.not_compared else ""
            counts = f"{result.compared} documents compared{without}, {len(result.differences)} differ"
            missing = f", {result.unpublished} of them were never published" if result.unpublished else ""
            missing += f"; {result.waiting} wait at the gate of the product" if result.waiting else ""
            older = f"; {result.outdated} are of an older version of the product" if result.outdated else ""
            others = "".join(f"; passed over {n:,} messages of {other}" for other, n in result.passed.items())
            warn(f"{name}: {counts}{missing}{older}{others}")
        if options.sample:
            warn(f"this was a sample: --seed {seed} takes the same one")
        if options.repair:
            warn(f"{repaired} documents published again")
    return 1 if len(differences) > repaired or any(d.refuted for d in differences) or not_compared else 0


@contextmanager
def _verifier(settings: Settings, plan: Plan, store: Store, sql: bool) -> Iterator[Verifier]:
    from processor.tools.inspect.oracle import oracle

    with ExitStack() as stack:
        runner = with_open_changes(StepRunner(store=store))
        mirror = None
        if sql:
            schema = f"statestore_verify_{uuid4().hex[:8]}"
            tables = stack.enter_context(oracle(settings.registry, schema, plan.declared_entities))
            mirror = Mirror(plan=plan, store=store, tables=tables, report=print_progress)
        yield Verifier(plan=plan, runner=runner, wait=lambda: sleep(settings.wait_seconds), mirror=mirror)


def _verify_product(
    verifier: Verifier, settings: Settings, name: str, sample: int | None, random: Random
) -> VerificationResult:
    from processor.job.kafka.reader import read_topic
    from processor.job.kafka.schemas import NO_REGISTRY, as_json

    planned = product_of(verifier.plan, name)
    product = planned.product
    topic: TopicReader = partial(read_topic, settings.bootstrap_servers, dict(settings.kafka), product.topic)
    if product.format == "avro":
        if not settings.schema_registry:
            raise SettingError(f"product {name}: {NO_REGISTRY}")
        access = resolve_schema_registry(settings.schema_registry)
        entities = verifier.plan.declared_entities
        return verifier.verify(planned, lambda: as_json(topic(), product, entities, access), sample, random)
    return verifier.verify(planned, topic, sample, random)


def unfit_among(plan: Plan, store: Store, differences: Iterable[Difference]) -> list[Difference]:
    """The differences whose document does not fit its topic, by the ledger."""
    keyed = [(group_key(plan.products[d.product].ledger, d.root), d) for d in differences if d.root is not None]
    items = store.get([key for key, _ in keyed])
    return [d for key, d in keyed if read_entry(items.get(key), plan.products[d.product].number).unfit]


def _repair(settings: Settings, plan: Plan, store: Store, differences: Iterable[Difference]) -> int:
    """Publishes the documents again that differ from the state, except those whose key is not a key of the root.

    Returns how many documents it published.
    """
    from processor.engine.rounds.follow_up_stages import RootToRepair
    from processor.tools.operate.repair import Repair

    roots = [
        RootToRepair((d.product, d.root), d.key, d.partitions) for d in differences if d.root is not None and d.stale
    ]
    if not roots:
        return 0
    with open_registry(settings) as registry:
        repair = Repair(settings=settings, plan=plan, registry=registry, store=store, owner=owner_name())
        return repair.publish(roots)[Count.PUBLISHED]


def _json(verified: dict[str, VerificationResult], repaired: int, sql: bool) -> dict[str, object]:
    return {
        "products": {
            name: {
                "compared": result.compared,
                "unpublished": result.unpublished,
                "older_version": result.outdated,
                "waiting": result.waiting,
                **({"passed_over": dict(result.passed)} if result.passed else {}),
                "differences": [_difference(d, sql) for d in result.differences],
            }
            | (
                {"not_compared_with_sql": [{"key": d.key, "reason": d.reason} for d in result.not_compared]}
                if sql
                else {}
            )
            for name, result in verified.items()
        },
        "repaired": repaired,
    }


def _difference(difference: Difference, sql: bool) -> dict[str, object]:
    found = {"key": difference.key, "published": _value(difference.published), "state": _value(difference.state)}
    if difference.strays:
        found["strays"] = list(difference.strays)
    if headers := _differing_headers(difference):
        found["headers"] = {name: {"published": one, "state": other} for name, one, other in headers}
    return found | ({"sql": _value(difference.sql)} if sql else {})


def _value(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return canonical_json.loads(value)
    except ValueError:
        return value.decode(errors="replace")


SHOWN = 5
"""Documents that the report shows of each group."""
LONGEST = 100
"""Characters of a value in a line."""
ABSENT = "no value"

Place = tuple[str | int, ...]
"""The way to a value within a document: names of members, and indexes of elements."""


def difference_lines(differences: Iterable[Difference], sql: bool) -> Iterator[str]:
    """The report as text. A group has the documents of one product that differ in the same fields."""
    groups: dict[tuple[str, str], list[tuple[Difference, list[Place]]]] = {}
    for difference in differences:
        places = _differing_places(difference)
        groups.setdefault((difference.product, _group(difference, places)), []).append((difference, places))
    for (product, group), found in groups.items():
        yield coloured(f"{product}: {group}: {len(found)} {'document' if len(found) == 1 else 'documents'}", "bold")
        for difference, places in found[:SHOWN]:
            yield f"  {visible_line(difference.key)}"
            for place in places[:SHOWN]:
                yield from (f"    {line}" for line in _place_lines(difference, place, sql))
            if difference.strays:
                yield f"    an earlier document in partition {', '.join(map(str, difference.strays))}"
            for name, one, other in _differing_headers(difference)[:SHOWN]:
                yield f"    header {visible_line(name)}"
                yield f"      published {coloured(visible_line(shortened(one, LONGEST)), 'red')}"
                yield f"      state     {coloured(visible_line(shortened(other, LONGEST)), 'green')}"
        if len(found) > SHOWN:
            yield f"  and {len(found) - SHOWN} more (--json shows all)"


def _group(difference: Difference, places: list[Place]) -> str:
    if difference.root is None:
        return "the key is not a key of the root: another program writes to this topic"
    if difference.published is None and difference.state is not None:
        return "never published, or deleted in the topic"
    if difference.state is None and difference.published is not None:
        return "published, but the state has no document"
    fields = dict.fromkeys("".join(map(partial(_step, index=""), place)).lstrip(".") for place in places)
    fields |= dict.fromkeys(["an earlier document in another partition"] if difference.strays else [])
    fields |= dict.fromkeys(f"header {name}" for name, _, _ in _differing_headers(difference))
    return f"differs in {', '.join(fields) or 'the whole document'}"


def _differing_places(difference: Difference) -> list[Place]:
    """The places where published document and state differ; where these are equal, state and SQL."""
    one, other = (difference.published, difference.state) if difference.stale else (difference.state, difference.sql)
    if one is None or other is None:
        return [()]
    try:
        return list(_differ((), canonical_json.loads(one), canonical_json.loads(other)))
    except ValueError:  # another program wrote a message that is not JSON
        return [()]


def _differing_headers(difference: Difference) -> list[tuple[str, str, str]]:
    """The headers that differ between two documents, each with its text in the topic and by the state."""
    one, other = dict(difference.published_headers), dict(difference.state_headers)
    if difference.published is None or difference.state is None or one == other:
        return []

    def text(headers: dict[str, bytes], name: str) -> str:
        return headers[name].decode(errors="replace") if name in headers else ABSENT

    return [(name, text(one, name), text(other, name)) for name in {**one, **other} if one.get(name) != other.get(name)]


def _differ(place: Place, one: Value, other: Value) -> Iterator[Place]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            if name in one and name in other:
                yield from _differ((*place, name), one[name], other[name])
            else:
                yield (*place, name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _differ((*place, index), *pair)
    elif not canonical_json.equal(one, other):
        yield place


def _place_lines(difference: Difference, place: Place, sql: bool) -> Iterator[str]:
    if place:
        yield "".join(map(_step, place)).lstrip(".")
    indent = "  " if place else ""
    yield f"{indent}published {coloured(_text(difference.published, place), 'red')}"
    if difference.root is not None:
        yield f"{indent}state     {coloured(_text(difference.state, place), 'green')}"
        if sql:
            yield f"{indent}sql       {_text(difference.sql, place)}"


def _step(step: str | int, index: str | None = None) -> str:
    """A step of a place as text; `index`: in place of the index of an element."""
    return f".{visible_line(step)}" if isinstance(step, str) else f"[{step if index is None else index}]"


def _text(document: bytes | None, place: Place) -> str:
    """The value at a place of a document, in one line."""
    if document is None:
        return "no document"
    try:
        value = canonical_json.loads(document)
    except ValueError:
        text = document.decode(errors="replace")
    else:
        text = ABSENT
        with suppress(LookupError, TypeError):  # the document has no such place
            text = canonical_json.dumps(reduce(getitem, place, value))
    return visible_line(shortened(text, LONGEST))
