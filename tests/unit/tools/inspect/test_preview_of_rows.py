"""What stored rows add to the output of `plan`: warnings, and the backfills with their price."""

from dataclasses import replace

import pytest

from processor.cli.printing.plan import plan_lines
from processor.environment.settings.settings import Settings
from processor.tools.inspect.preview import preview
from processor.tools.inspect.price_list import DEFAULT
from registry.model import EntityStatistics
from tests.unit.tools.inspect.previews import ENTITIES, SAME, SHARDED, STARS, definitions, statistics, stored


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
    hot = "join star(who) = user(name): 'mona' finds 30,000 rows of star: a document reads them all, and all are in one key of "
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
