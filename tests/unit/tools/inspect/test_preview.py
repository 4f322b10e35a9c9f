"""The output of `plan`: golden texts (`golden/plan_*.txt`), refusals with the slots that could be freed, and exit statuses.

After an intended change of wording: `UPDATE_GOLDEN=1 pytest tests/unit/tools/inspect/test_preview.py`, then read the diff.

What stored rows add to the output of `plan`: warnings, and the backfills with their price.

What the registry saves without a product.
"""

import json
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from processor.cli.choices import empty_registry
from processor.cli.main import main
from processor.cli.printing.plan import plan_lines, together
from processor.engine.plan.planning import requirements_of
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Definitions
from processor.tools.inspect.preview import preview, savings_without
from processor.tools.inspect.price import columns_of
from processor.tools.inspect.prices import DEFAULT
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.errors import DefinitionChanged, NoSlot
from registry.model import EntityStatistics, Snapshot, Statistics
from tests.unit.tools.inspect.previews import ENTITIES, FORKS, SAME, SHARDED, STARS, definitions, statistics, stored

GOLDEN = Path(__file__).parent / "golden"
EXAMPLE = Path(__file__).parents[4] / "examples" / "github"


def plan_text(definitions: Definitions, registry: Snapshot, statistics: Statistics | None = None) -> str:
    found = replace(preview(definitions, registry, frozenset(), Settings(), statistics), plan="ID")
    return "\n".join(plan_lines(found, DEFAULT, verbose=True)) + "\n"


def compare(name: str, text: str) -> None:
    """Compares with a golden file, or writes it."""
    file = GOLDEN / f"plan_{name}.txt"
    if "UPDATE_GOLDEN" in os.environ:
        file.write_text(text)
    assert text == file.read_text()


def test_the_text_of_a_hundred_products_is_bounded() -> None:
    stars = STARS.replace("limit: 10, ", "")
    files = {f"p{n}.yaml": stars.replace("product: stars", f"product: p{n}") for n in range(100)}
    wanted = load({"entities.yaml": ENTITIES, **files})
    found = preview(wanted, empty_registry(Settings()), frozenset())
    lines = list(plan_lines(found, DEFAULT, verbose=True))
    assert [line for line in lines if "more" in line] == [
        "  user: p0, p1, p10 and 97 more",
        "  p0.stars, p1.stars, p10.stars, p11.stars, p12.stars and 95 more: a `many` without `limit` grows",
    ]
    assert len([line for line in lines if not line.startswith("  + product p")]) < 50
    registry = edited(
        empty_registry(Settings()), apply(empty_registry(Settings()), requirements_of(wanted), frozenset())
    )
    one = preview(load({"entities.yaml": ENTITIES, "forks.yaml": FORKS}), registry, frozenset())
    lines = list(plan_lines(one, DEFAULT))
    assert len(lines) < 30
    kept = "\n".join(lines).partition("  not named here")[2].partition("\n\n")[0]
    assert " ".join(kept.split()) == (
        ", and kept: "
        + ", ".join(f"product {name}" for name in sorted(files)[:10]).replace(".yaml", "")
        + " and 90 more"
    )


def test_each_line_is_at_most_100_columns_wide_and_no_line_is_there_twice() -> None:
    """The examples, and a hundred products with long names, with prices and all details."""
    long = "a_product_with_a_name_as_long_as_a_topic_may_be_" * 3
    many = {f"p{n}.yaml": STARS.replace("product: stars", f"product: p{n}{long}") for n in range(100)}
    sets = [load(read_directory(path.parent)) for path in sorted(EXAMPLE.parent.glob("*/entities.yaml"))]
    for wanted in (*sets, load({"entities.yaml": ENTITIES, **many})):
        registry, nothing = stored(wanted), empty_registry(Settings())
        priced = preview(wanted, registry, frozenset(), Settings(), statistics(registry, {}))
        for found in (priced, preview(wanted, nothing, frozenset())):
            lines = list(plan_lines(found, DEFAULT, verbose=True))
            assert max(map(len, lines)) <= 100
            changes = [line for line in lines if line.startswith("  + ")]
            assert len(changes) == len({*changes})


def test_a_hundred_products_have_their_prices_in_one_table_by_product() -> None:
    files = {f"p{n}.yaml": STARS.replace("product: stars", f"product: p{n}") for n in range(100)}
    found = preview(
        load({"entities.yaml": ENTITIES, **files}), empty_registry(Settings()), frozenset(), Settings(), None
    )
    lines = list(plan_lines(found, DEFAULT))
    assert lines[0] == (
        "3 entities and 100 products to add, 2 slots to add; 100 products: $0.7 to $9.0 a million events"
    )
    (head,) = [number for number, line in enumerate(lines) if line.split() == ["product", "from", "to"]]
    table = lines[head + 1 :][:100]
    assert [line.split()[0] for line in table] == sorted(f"p{n}" for n in range(100))


@pytest.mark.parametrize(
    ("name", "wanted", "registry"),
    [
        ("first", load(read_directory(EXAMPLE)), empty_registry(Settings())),
        ("nothing", definitions(STARS, FORKS), stored(definitions(STARS, FORKS))),
        ("another_product", definitions(STARS, SAME), stored(definitions(STARS, FORKS))),
        ("changed_product", definitions(STARS.replace("who: name", "ok: ok")), stored(definitions(STARS))),
    ],
)
def test_a_plan_prints_its_changes_its_slots_and_the_cost_of_events(
    name: str, wanted: Definitions, registry: Snapshot
) -> None:
    compare(name, plan_text(wanted, registry))


def test_a_plan_with_statistics_prints_estimates_and_warnings() -> None:
    example = load(read_directory(EXAMPLE))
    registry = stored(example)
    found = statistics(
        registry,
        {
            ("star", "down"): (40, 9_000, "octocat"),
            ("star", "up"): (1, 1, "octocat"),
            ("repo", "down"): (1, 1, "acme#tool"),
            ("repo", "up"): (25.5, 120_000, "acme#tool"),
            ("pull_request", "down"): (3, 200, "hubot"),
            ("pull_request", "up"): (0.9, 1, "octocat"),
        },
    )
    compare("statistics", plan_text(example, registry, found))


def test_a_plan_says_what_changes_in_an_entity_and_in_a_product() -> None:
    registry = stored(definitions(STARS))
    other = STARS.replace("root: user", "root: user\n    where: ok").replace(
        "limit: 10, fields: [id]", "fields: [who, id]"
    )
    wanted = definitions(other, entities=ENTITIES.replace("ok: bool, city: string", "ok: bool, city: json"))
    found = preview(wanted, registry, frozenset())
    lines = list(plan_lines(found, DEFAULT))
    assert lines[:8] == [
        "1 entity and 1 product to change",
        "",
        "  ~ entity user",
        "      columns.city: string -> json",
        "  ~ product stars, version 2",
        "      embed.stars.limit: removed, was 10",
        "      embed.stars.fields.who: added, who",
        "      where: added, ok",
    ]


def test_a_plan_without_changes_shows_no_slots() -> None:
    registry = stored(definitions(STARS, FORKS))
    lines = list(plan_lines(preview(definitions(STARS, FORKS), registry, frozenset()), DEFAULT))
    assert lines == ["nothing would change"]


def test_a_plan_can_leave_prices_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--offline", "--no-price", "--verbose", "--definitions", str(EXAMPLE)]) == 0
    out = capsys.readouterr().out
    assert "price" not in out
    assert "GSI_1 of user holds username" in out


def test_a_plan_prices_the_products_that_it_touches_and_says_each_advice_once() -> None:
    before = load({"entities.yaml": ENTITIES, "forks.yaml": FORKS, "stars.yaml": STARS})
    wanted = load({"entities.yaml": ENTITIES, "forks.yaml": FORKS, "stars.yaml": STARS.replace("limit: 10, ", "")})
    shown, *lines = plan_lines(
        preview(wanted, stored(before), frozenset({"star", "user", "fork"}), Settings()), DEFAULT
    )
    assert "; stars: $" in shown
    assert "forks" not in shown
    assert not any("GSI" in line for line in lines)
    assert together(["a is b: cure", "c is d: cure", "alone"]) == ["a is b, c is d: cure", "alone"]


def test_a_refusal_names_the_slots_that_could_be_freed() -> None:
    registry = stored(definitions(STARS), slots=1)
    with pytest.raises(NoSlot, match="retire and free one of these"):
        preview(definitions(STARS.replace("who: name", "ok: ok")), registry, frozenset(), Settings())


def test_a_change_of_the_shards_of_stored_rows_is_refused() -> None:
    sharded = definitions(STARS, entities=ENTITIES.replace("user: {", "user: {shards: 2, "))
    with pytest.raises(DefinitionChanged, match="the number of shards was 1 and is now 2"):
        preview(sharded, stored(definitions(STARS)), frozenset(), Settings())


def test_the_command_prints_json_and_exits_with_1_on_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--offline", "--json", "--definitions", str(EXAMPLE)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["errors"] == []
    assert found["slots"][1]["together"] == ["star"]
    assert found["prices"] == {"region": "us-east-1", "date": "2026-11", "write": "0.625", "read": "0.125"}
    cost = next(c for c in found["costs"] if (c["entity"], c["event"]) == ("star", "update of nothing that is used"))
    assert (cost["dollars_per_million"], cost["batch_dollars_per_million"]) == (0.6875, 0.6875)
    star = next(c for c in found["costs"] if (c["entity"], c["event"]) == ("star", "first seen"))
    assert (star["dollars_per_million"], star["batch_dollars_per_million"]) == (4.9375, pytest.approx(3.06, abs=0.01))
    (tmp_path / "entities.yaml").write_text("user: {key: [idd], columns: {id: int}}\n")
    assert main(["plan", "--offline", "--json", "--definitions", str(tmp_path)]) == 1
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert errors == [
        f"{tmp_path}/entities.yaml:1: entity `user` has no column `idd` for its `key`; did you mean 'id'?"
    ]
    assert main(["plan", "--offline", "--definitions", str(EXAMPLE), "--slots", "1"]) == 1
    assert "no slot is free for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("star", "warned"),
    [
        ("{many: star, on: {who: name}, fields: [id]}", True),
        ("{many: star, on: {who: name}, fields: [id], limit: 100}", False),
        ("{many: star, on: {who: name}, value: count(*)}", False),
    ],
)
def test_a_plan_warns_of_a_document_that_shows_too_many_rows(star: str, warned: bool) -> None:
    product = f"product: stars\nroot: user\nembed:\n  stars: {star}\n"
    wanted = definitions(product)
    registry = stored(wanted)
    found = statistics(registry, {("star", "down"): (2, 30_000, "mona")})
    warnings = preview(wanted, registry, frozenset(), statistics=found).warnings
    hot = (
        "join star(who) = user(name): 'mona' finds 30,000 rows of star: a document reads them all, about 1,465 read units an "
        "event, and all are in one key of "
    )
    assert [warning for warning in warnings if warning.startswith(hot)]
    large = "stars: a document may have about 11.4 MiB (stars of 'mona': 30,000 rows); Kafka takes 1 MiB by default"
    assert bool([warning for warning in warnings if warning.startswith(large)]) == warned


def test_a_plan_warns_of_a_row_near_the_limit_of_an_item() -> None:
    wanted = definitions(STARS)
    registry = stored(wanted)
    user = EntityStatistics(entity="user", rows=1, mean_bytes=350 * 1024, most_bytes=350 * 1024)
    found = replace(statistics(registry, {}), entities=(user,))
    warnings = preview(wanted, registry, frozenset(), statistics=found).warnings
    assert (
        "entity user: a row of the sample has 350 KiB, and an item of the table holds 400; store less in a row"
        in warnings
    )


def test_a_plan_names_each_backfill_with_its_rows_its_price_and_its_time() -> None:
    registry = stored(definitions(STARS, entities=SHARDED))
    wanted = definitions(STARS, SAME, entities=SHARDED)
    has_run = frozenset({"user", "star"})
    found = preview(wanted, registry, has_run, statistics=statistics(registry, {}))
    assert found.changes[-1] == "product same: added, version 1 waits until its slots are full"
    lines = list(plan_lines(found, DEFAULT))
    assert lines[0] == "1 product to add, 4 slots to fill; 2,000,000 rows, 25 minutes, $4.38"
    assert "  + product same, version 1, once its slots are full" in lines
    assert [line for line in lines if line.startswith("  ~ ")] == [
        "  ~ 1,000,000 rows of star to fill: 3,000,000 write units, $1.88, about 0:16:40 at 1,000 write units",
        "  ~ 1,000,000 rows of user to fill: 4,000,000 write units, $2.50, about 0:08:20 at 1,000 write units",
    ]
    uncounted = plan_lines(preview(wanted, registry, has_run), DEFAULT)
    assert "  ~ rows of star to fill: `statestore statistics` counts them" in uncounted


def test_a_plan_prices_a_waiting_product_as_it_is_once_it_is_live() -> None:
    registry = stored(definitions(STARS))
    wanted = definitions(STARS, SAME)
    waiting = preview(wanted, registry, frozenset({"user", "star"}), Settings())
    assert waiting.costs == preview(wanted, registry, frozenset(), Settings()).costs


def test_a_plan_names_new_edges_of_stored_rows() -> None:
    registry = stored(definitions(STARS))
    strong = STARS.replace("limit: 10", "strong: true")
    found = preview(definitions(strong), registry, frozenset({"star"}), statistics=statistics(registry, {}))
    (needed,) = found.backfills
    assert (needed.entity, needed.holds, needed.rows, needed.seconds) == ("star", "edges by who", 1_000_000, 1_000)
    assert needed.write_units == 3_000_000  # the row, its slot, and an edge


@pytest.mark.parametrize(
    ("fields", "shown"), [("[id, ok]", "the indexes show ok"), (None, "the indexes show whole rows")]
)
def test_a_plan_names_columns_that_the_indexes_of_stored_rows_begin_to_show(fields: str | None, shown: str) -> None:
    registry = stored(definitions(STARS))
    wider = STARS.replace(", fields: [id]}", f", fields: {fields}}}" if fields else "}")
    found = preview(definitions(wider), registry, frozenset({"star"}), statistics=statistics(registry, {}))
    (needed,) = found.backfills
    assert (needed.entity, needed.holds, needed.write_units) == ("star", shown, 2_000_000)  # the row and its slot
    assert not preview(definitions(STARS), stored(definitions(wider)), frozenset({"star"})).backfills


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[id, ok]", "[id]", ["no product reads ok through an index any more"]),
        (None, "[id]", ["no product reads whole rows through an index any more"]),
        ("[id]", "[id, ok]", []),
    ],
)
def test_a_plan_says_which_columns_the_indexes_need_no_more(old: str | None, new: str, said: list[str]) -> None:
    before, after = (STARS.replace(", fields: [id]}", f", fields: {f}}}" if f else "}") for f in (old, new))
    found = preview(definitions(after), stored(definitions(before)), frozenset({"star"}))
    shown = [one for one in found.warnings if one.startswith("entity star: no product reads")]
    assert [one.removeprefix("entity star: ").split(";")[0] for one in shown] == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            ENTITIES,
            f"\n    keep: declared{ENTITIES}",
            "a row loses its undeclared columns when the job writes it again",
        ),
        (f"\n    keep: declared{ENTITIES}", ENTITIES, "rows that `keep: declared` stored have no undeclared columns"),
        (
            f"\n    keep: declared{ENTITIES}",
            f"\n    keep: declared{ENTITIES.replace('who: string, ok: bool', 'who: string, ok: bool, n: int')}",
            "`keep: declared` did not store n of the present rows",
        ),
    ],
)
def test_a_plan_says_which_values_stored_rows_lose_or_lack(old: str, new: str, said: str) -> None:
    registry = stored(definitions(STARS, entities=old))
    found = preview(definitions(STARS, entities=new), registry, frozenset({"star"}))
    (line,) = [one for one in found.warnings if one.startswith("entity star: ")]
    assert line == f"entity star: {said}; only a new snapshot of topic star brings them back"
    assert not [
        one for one in preview(definitions(STARS, entities=new), registry, frozenset()).warnings if "snapshot" in one
    ]


SETTINGS = Settings(slots=20)


def savings(name: str, *products: str) -> dict[str, tuple[Decimal, Decimal]]:
    registry = stored(definitions(*products))
    found = preview(definitions(*products), registry, frozenset(), SETTINGS)
    return {e: (now, without) for e, now, without in savings_without(name, found, registry, SETTINGS, None, DEFAULT)}


def test_without_a_product_only_the_rows_of_its_own_entities_are_written() -> None:
    found = savings("forks", STARS, FORKS)
    assert found.keys() == {"user", "fork"}
    now, without = found["fork"]
    assert without == DEFAULT.write < now
    now, without = found["user"]
    assert DEFAULT.write < without < now


def test_a_product_whose_joins_another_one_has_saves_almost_nothing() -> None:
    same = STARS.replace("product: stars", "product: twin")
    for now, without in savings("twin", STARS, same).values():
        assert now - without <= now / 20


def test_the_columns_of_an_update() -> None:
    assert columns_of("update of a, b (join key)") == {"a", "b"}
    assert columns_of("delete") == columns_of("update of nothing that is used") == frozenset()
