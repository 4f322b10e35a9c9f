"""The site of `statestore catalogue`: an index with a search, and a page for each product and each entity.

The same definitions give the same bytes: no page has a date of its own, so a repository can keep the site. Only `write_site`
writes files: its own pages of an earlier run go, and every other file stays. The tests of a product run in memory, and show the
document that they expect.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from processor.engine.plan.plan import Plan
from processor.engine.rounds.trial import run_trial
from processor.environment.settings.settings import Settings
from processor.errors import SettingError
from processor.language.definitions.describe import describe_messages
from processor.language.definitions.product_tests import Case
from processor.language.product.product import Definitions, Note, Product, root_entity, used_by_entity
from processor.language.product.sql_printer import product_sql
from processor.tools.inspect.explain import AccessPath, ExplainedJoin, explain
from processor.tools.inspect.preview import Preview, ProductPrice, product_prices
from processor.tools.inspect.price import BATCH
from processor.tools.inspect.prices import Prices
from processor.tools.web.answers import RenderPage
from processor.tools.web.catalogue.product import (
    Member,
    ProductVersions,
    document_members,
    join_text,
    levels_of,
    lineage_picture,
)
from processor.values import canonical_json
from processor.values.entity import Entity
from statestore.items import slot_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A document that a test expects. `case`: the test; `key`: of the message; `document`: JSON, a line for each member."""

    case: Case
    key: str
    document: str


def example_of(product: str, cases: Sequence[Case], plan: Plan, settings: Settings) -> Example | None:
    """The document of the product that its tests show the most of. None where no test has one, or none publishes it."""
    topic = plan.products[product].product.topic
    for case, key in _most_shown_first(case for case in cases if case.product == product):
        messages = run_trial(case, plan, settings).published.messages
        values = [m.value for m in messages if m.topic == topic and (m.key or b"").decode() == key]
        if values and values[-1] is not None:
            shown = canonical_json.dumps_indented(canonical_json.loads(values[-1]))
            return Example(case=case, key=key, document=shown)
    return None


def _most_shown_first(cases: Iterable[Case]) -> list[tuple[Case, str]]:
    """The tests with the key of each document that they expect, the longest expectation first."""
    expected = [(case, one) for case in cases for one in case.expected if one.document is not None]
    expected.sort(key=lambda found: len(canonical_json.dumps(found[1].document)), reverse=True)
    return [(case, one.key) for case, one in expected]


LONGEST = 100
"""Characters of a name in the name of a file."""


def page_names(names: Iterable[str]) -> dict[str, str]:
    """The file of each name. A long name, and names that only capitals tell apart, get a hash: some file systems know no
    difference."""
    known = list(names)
    alike = Counter(name.lower() for name in known)
    return {
        name: f"{name}.html" if len(name) <= LONGEST and alike[name.lower()] == 1 else f"{_hashed(name)}.html"
        for name in known
    }


def _hashed(name: str) -> str:
    return f"{name[:LONGEST]}-{sha256(name.encode()).hexdigest()[:8]}"


FOLDERS: Final = ("products", "entities")
MARK: Final = '<meta name="generator" content="statestore catalogue">'
"""Every page has it: the writer removes no page of others."""
INDEX: Final = "index.html"
ASSETS: Final = ("catalogue.css", "catalogue.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The content of a site. `plan`, `found`: after an apply of the definitions; `examples`, `versions`: by product, the second
    None without a registry."""

    title: str
    definitions: Definitions
    plan: Plan
    found: Preview
    prices: Prices
    examples: Mapping[str, Example]
    versions: Mapping[str, ProductVersions] | None


def site_files(catalogue: Catalogue, render: RenderPage) -> dict[str, str]:
    """The text of each file by its path."""
    return dict(_Site(catalogue, render).files())


class _Site:
    def __init__(self, catalogue: Catalogue, render: RenderPage) -> None:
        self._of, self._render = catalogue, render
        definitions = catalogue.definitions
        self._names = {"products": page_names(definitions.products), "entities": page_names(definitions.entities)}
        self._members = {name: document_members(one, definitions) for name, one in definitions.products.items()}
        self._reads = {name: dict(_columns_read(one)) for name, one in definitions.products.items()}
        self._prices = {price.product: price for price in product_prices(catalogue.found, catalogue.prices)}

    def files(self) -> Iterator[tuple[str, str]]:
        definitions = self._of.definitions
        yield INDEX, self._page(INDEX, "", products=self._products(), entities=self._entities())
        for name, product in definitions.products.items():
            yield f"products/{self._names['products'][name]}", self._product_page(product)
        for name, entity in definitions.entities.items():
            yield f"entities/{self._names['entities'][name]}", self._entity_page(entity)
        for asset in ASSETS:
            yield asset, (files("processor.tools.web.catalogue") / "templates" / asset).read_text(encoding="utf-8")

    def _page(self, template: str, up: str, **values: Any) -> str:
        return self._render(
            template,
            title=self._of.title,
            up=up,
            pages=self._names,
            prices=self._of.prices,
            batch=BATCH,
            **values,
        )

    def _products(self) -> Iterator[dict[str, Any]]:
        for name, product in self._of.definitions.products.items():
            note, members = self._of.definitions.product_notes.get(name, Note()), self._members[name]
            words = [name, product.topic, note.owner, note.description, *self._reads[name], *(m.name for m in members)]
            price = self._prices.get(name)
            yield {"product": product, "note": note, "price": price, "words": _words(words), "members": len(members)}

    def _entities(self) -> Iterator[dict[str, Any]]:
        for name, entity in self._of.definitions.entities.items():
            note = self._of.definitions.entity_notes.get(name, Note())
            words = [name, entity.topic, note.owner, note.description, *entity.columns, *note.columns.values()]
            yield {"entity": entity, "note": note, "words": _words(words), "readers": len(self._readers(name))}

    def _product_page(self, product: Product) -> str:
        name, definitions = product.name, self._of.definitions
        members: tuple[Member, ...] = self._members[name]
        explained = explain(self._of.plan, self._of.plan.products[name])
        return self._page(
            "product.html",
            "../",
            product=product,
            note=definitions.product_notes.get(name, Note()),
            root=root_entity(product, definitions.entities),
            members=members,
            messages=describe_messages(product),
            picture=lineage_picture(product, members),
            joins=_joins(product, explained.joins),
            requests=explained.requests,
            example=self._of.examples.get(name),
            price=self._prices.get(name),
            entity_prices=[self._entity_price(entity) for entity in self._reads[name]],
            versions=None if self._of.versions is None else self._of.versions[name],
            sql=product_sql(product, definitions.entities),
        )

    def _entity_page(self, entity: Entity) -> str:
        readers = self._readers(entity.name)
        return self._page(
            "entity.html",
            "../",
            entity=entity,
            note=self._of.definitions.entity_notes.get(entity.name, Note()),
            readers=readers,
            users={
                column: [p for p in readers if _is_read(self._reads[p][entity.name], column)]
                for column in entity.columns
            },
            slots=[(slot_name(one.slot), one) for one in self._of.found.slots if one.entity == entity.name],
            events=list(self._events(entity.name)),
        )

    def _readers(self, entity: str) -> list[str]:
        return [name for name, read in self._reads.items() if entity in read]

    def _events(self, entity: str) -> Iterator[dict[str, Any]]:
        """The price of each kind of event of an entity."""
        for cost in (cost for cost in self._of.found.costs if cost.entity == entity):
            write, read = cost.batch_write_units, cost.batch_read_units
            yield {"cost": cost, "dollars": self._of.prices.dollars(write, read)}

    def _entity_price(self, entity: str) -> ProductPrice | None:
        dollars = [event["dollars"] for event in self._events(entity)]
        return ProductPrice(product=entity, low=min(dollars), high=max(dollars)) if dollars else None


def _columns_read(product: Product) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Each entity that a product reads, with the columns that it reads there; None for all."""
    found: dict[str, frozenset[str] | None] = {}
    for entity, columns in used_by_entity(product):
        known = found.get(entity, frozenset())
        found[entity] = None if columns is None or known is None else known | columns
    yield from found.items()


def _is_read(columns: frozenset[str] | None, column: str) -> bool:
    return columns is None or column in columns


def _words(words: Sequence[str]) -> str:
    """The words that the search looks through."""
    return " ".join(" ".join(words).lower().split())


def _joins(product: Product, explained: Sequence[ExplainedJoin]) -> list[dict[str, str]]:
    """Each join with its requests: for a document, and from a changed row up to the documents."""
    levels = levels_of(product)
    found: list[dict[str, str]] = []

    def add(above: str, at: tuple[str, ...], joins: Sequence[ExplainedJoin]) -> None:
        for join in joins:
            path = (*at, join.name)
            text = join_text(levels[path], above)
            found.append({"name": ".".join(path), "text": text, "down": _path(join.down), "up": _path(join.up)})
            add(join.entity, path, join.below)

    add(product.root, (), explained)
    return found


def _path(path: AccessPath) -> str:
    return f"{path.request} {path.by}" if path.request else f"no request: {path.by}"


MARK_BYTES = 4096
"""The mark is near the beginning of a page."""


def write_site(files: Mapping[str, str], directory: Path) -> None:
    """Writes the files, by their paths below the directory, and removes pages of products and entities that are gone. Raises
    SettingError, before it writes anything, where that would overwrite a file of others or lead out of the directory."""
    if foreign := list(_foreign(files, directory)):
        more = f", and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise SettingError(
            f"--to: {foreign[0]}{more}; nothing was written: give an empty directory, or one of an earlier catalogue"
        )
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in (path for folder in FOLDERS for path in (directory / folder).glob("*.html")):
        if path.relative_to(directory).as_posix() not in files and _is_page(path):
            path.unlink()


def _foreign(files: Mapping[str, str], directory: Path) -> Iterator[str]:
    """What the site must not overwrite."""
    for folder in FOLDERS:
        if (directory / folder).is_symlink():
            yield f"{directory / folder} is a symbolic link, which may lead anywhere"
        elif os.path.lexists(directory / folder) and not (directory / folder).is_dir():
            yield f"{directory / folder} is no directory"
    for name in files:
        path = directory / name
        if path.is_symlink():
            yield f"{path} is a symbolic link, which may lead anywhere"
        elif os.path.lexists(path) and not _is_page(directory / INDEX if name in ASSETS else path):
            yield f"{path} is no file of a catalogue"


def _is_page(path: Path) -> bool:
    """Whether a file is a page that `catalogue` wrote."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return MARK.encode() in file.read(MARK_BYTES)
    except FileNotFoundError:
        return False
