"""`statestore catalogue`: a site that a browser opens from files, whatever the names in the definitions are."""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from benchmarks.definitions import generate_definitions
from processor.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
VOID = {"meta", "link", "input", "br"}
SCRIPT = "<script>alert(1)</script>"
HOSTILE = {
    "entities.yaml": f"""
user:
  key: [id]
  owner: "{SCRIPT}"
  description: "{SCRIPT}"
  columns: {{id: int, "{SCRIPT}": {{type: string, description: "</code>{SCRIPT}&amp;"}}, "a b' onclick='x": string}}
""",
    "p.yaml": f"""
product: p
root: user
owner: "{SCRIPT}"
description: "{{{{ title }}}} {{% raw %}}{SCRIPT}"
fields: {{id: id, "{SCRIPT}": "'</code>{SCRIPT}'", "\\" autofocus onfocus=x y=\\"": '"{SCRIPT}"'}}
""",
    "tests/t.yaml": f"""
- test: "{SCRIPT}"
  product: p
  given: {{user: [{{id: 1, "{SCRIPT}": "{SCRIPT}"}}]}}
  contains: {{"1": {{id: 1}}}}
""",
}


class Page(HTMLParser):
    """A page: its links, ids, tags, headings, cards and text. It fails on a tag that is not closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self._open == [], path

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), (self.path, tag, attrs)
        self.tags.append((tag, given))
        self.links += [value for name in ("href", "src") if (value := given.get(name))]
        self.ids += [value for value in (given.get("id"),) if value]
        self.words += [value for value in (given.get("data-words"),) if value]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (self.path, tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def catalogue(directory: Path, site: Path, *words: str) -> dict[str, Page]:
    """The pages of a directory's site, by their paths in it."""
    assert main(["catalogue", str(directory), "--to", str(site), *words]) == 0
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def definitions(directory: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def dead_links(pages: dict[str, Page]) -> Iterator[str]:
    known = {page.path.resolve(): page for page in pages.values()}
    for page in pages.values():
        for link in page.links:
            parts = urlsplit(link)
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path.resolve()
            missing = parts.fragment and target in known and parts.fragment not in known[target].ids
            if parts.scheme or not target.is_file() or missing:
                yield f"{page.path}: {link}"


@pytest.mark.parametrize(
    "example",
    ["github", "orders", "github_products", "playlists", "timeline", "person", "shop", "sales", "masked", "categories"],
)
def test_each_product_and_entity_has_a_page_and_every_link_leads_to_one(example: str, tmp_path: Path) -> None:
    pages = catalogue(EXAMPLES / example, tmp_path)
    folders = {name.partition("/")[0] for name in pages}
    assert folders == {"index.html", "products", "entities"}
    assert list(dead_links(pages)) == []
    for page in pages.values():
        headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert headings[0] == 1
        assert headings.count(1) == 1
        assert all(below - above <= 1 for above, below in pairwise(headings)), page.path
        assert len(page.ids) == len(set(page.ids))
        labels = [given[name] for _, given in page.tags for name in ("aria-labelledby", "for") if given.get(name)]
        assert {str(label) for label in labels} <= set(page.ids)


def test_a_page_shows_schema_example_lineage_slots_price_and_words(tmp_path: Path) -> None:
    directory = definitions(
        tmp_path / "d",
        {
            path.relative_to(EXAMPLES / "orders").as_posix(): path.read_text()
            for path in (EXAMPLES / "orders").rglob("*.yaml")
        },
    )
    product = directory / "order_enriched.yaml"
    product.write_text(product.read_text() + "owner: checkout\ndescription: An order & its lines.\n")
    entities = directory / "entities.yaml"
    described = "name: {type: string, description: As on the invoice.}, country"
    entities.write_text(entities.read_text().replace("name: string, country", described))
    pages = catalogue(directory, tmp_path / "site", "--title", "The shop")
    page = pages["products/order_enriched.html"]
    for text in (
        "checkout",
        "An order & its lines.",
        "As on the invoice.",
        "list of objects, at most 500",
        "many order_line by order_id = order.id, in the order of number",
        '"article": "Tea"',
        "GSI_1 = <order.id>",
        "a million events",
        "SELECT",
    ):
        assert text in page.text, text
    assert "Versions" not in page.text
    picture = [given for tag, given in page.tags if tag == "svg"]
    assert [given["aria-label"] for given in picture] == ["Lineage of order_enriched"]
    assert "As on the invoice." in pages["entities/customer.html"].text
    assert "The shop" in pages["index.html"].text


def test_names_and_words_are_never_markup(tmp_path: Path) -> None:
    pages = catalogue(definitions(tmp_path / "d", HOSTILE), tmp_path / "site", "--title", SCRIPT)
    for page in pages.values():
        assert [given.get("src") for tag, given in page.tags if tag == "script"] in ([], ["catalogue.js"])
        assert not [given for _, given in page.tags if {"onclick", "onfocus", "autofocus", "style"} & given.keys()]
        assert SCRIPT in page.text
    assert "{{ title }} {% raw %}" in pages["products/p.html"].text
    assert list(dead_links(pages)) == []


def test_the_index_of_a_hundred_products_finds_each_by_its_words(tmp_path: Path) -> None:
    texts = generate_definitions(100)
    pages = catalogue(definitions(tmp_path / "d", dict(texts)), tmp_path / "site", "--no-price")
    index = pages["index.html"]
    products = [name for name in pages if name.startswith("products/")]
    assert len(products) == 100
    assert len(index.words) == 105
    for name in products:
        assert any(Path(name).stem in words.split() for words in index.words)
    assert index.path.stat().st_size < 100_000
    assert "a million events" not in index.text


def test_the_same_definitions_give_the_same_bytes_and_gone_pages_go(tmp_path: Path) -> None:
    directory = definitions(tmp_path / "d", {**HOSTILE, "q.yaml": "{product: q, root: user}"})
    site = tmp_path / "site"
    catalogue(directory, site)
    first = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    own = site / "products" / "mine.html"
    own.write_text("<p>of another tool</p>")
    (directory / "q.yaml").unlink()
    main(["catalogue", str(directory), "--to", str(site)])
    assert own.exists()
    assert not (site / "products" / "q.html").exists()
    (directory / "q.yaml").write_text("{product: q, root: user}")
    own.unlink()
    main(["catalogue", str(directory), "--to", str(site)])
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == first


def test_a_product_without_a_test_says_how_to_get_an_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"entities.yaml": "user: {key: [id], columns: {id: int}}", "p.yaml": "{product: p, root: user}"}
    pages = catalogue(definitions(tmp_path / "d", texts), tmp_path / "site")
    assert "A file in tests/ of the definitions gives this page an example." in pages["products/p.html"].text
    assert "1 products (0 with an example), 1 entities" in capsys.readouterr().out


def test_names_that_only_capitals_tell_apart_have_pages_of_their_own(tmp_path: Path) -> None:
    long = "x" * 300
    texts = {
        "entities.yaml": f"user: {{key: [id], columns: {{id: int}}}}\nUser: {{key: [id], columns: {{id: int}}}}\n"
        f"{long}: {{topic: t, key: [id], columns: {{id: int}}}}",
        "p.yaml": "{product: p, root: user}",
        "q.yaml": f"{{product: {long}, topic: long, root: User}}",
    }
    pages = catalogue(definitions(tmp_path / "d", texts), tmp_path / "site", "--no-price")
    assert len({name.lower() for name in pages}) == 1 + 2 + 3
    assert list(dead_links(pages)) == []


@pytest.mark.parametrize(
    ("product", "source", "kind"),
    [
        ("value: name", "name", "string or null"),
        ("embed: {n: {many: star, on: {user_id: id}, value: count(*)}}", "count(*) of many star", "int"),
        ("join: {s: {many: star, on: {user_id: id}}}\nfields: {n: count(s.id)}", "count(s.id)", "int"),
        ("join: {n: {many: star, on: {user_id: id}, value: count(*)}}\nfields: {t: n}", "count(*) of n", "int"),
        (
            "embed: {s: {many: star, on: {user_id: id}, fields: {up: parent.name}, limit: 2, total: true}}",
            "parent.name",
            "list",
        ),
        ("embed: {s: {many: star, on: {id: 'ids[]'}}}", "many star by id = user.ids[]", "list of objects"),
    ],
)
def test_every_kind_of_member_has_a_row_and_a_line(product: str, source: str, kind: str, tmp_path: Path) -> None:
    user, star = "{id: int, name: string, ids: 'int[]'}", "{id: int, user_id: int}"
    entities = f"user: {{key: [id], columns: {user}}}\nstar: {{key: [id], columns: {star}}}"
    texts = {"entities.yaml": entities, "p.yaml": f"product: p\nroot: user\n{product}\n"}
    page = catalogue(definitions(tmp_path / "d", texts), tmp_path / "site", "--no-price")["products/p.html"]
    assert source in page.text
    assert kind in page.text
    assert [given for tag, given in page.tags if tag == "path"]


def test_a_missing_jinja2_is_named_with_its_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["catalogue", str(EXAMPLES / "github"), "--to", str(tmp_path)]) == 1
    assert "the pages need Jinja2: pip install 'statestore[catalogue]'" in capsys.readouterr().err


def test_a_wrong_definition_and_a_wrong_place_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = definitions(tmp_path / "d", {"entities.yaml": "user: {key: [id], columns: {id: int, x: {type: txt}}}"})
    assert main(["catalogue", str(directory), "--to", str(tmp_path / "site")]) == 1
    assert f"{directory / 'entities.yaml'}:1: the type of column `x` cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()
    (tmp_path / "file").write_text("")
    assert main(["catalogue", str(EXAMPLES / "github"), "--to", str(tmp_path / "file")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
