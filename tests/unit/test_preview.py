"""What `plan` says: golden texts (`golden/plan_*.txt`), refusals with what could be freed, and exit statuses.

After a change of wording that is meant: `UPDATE_GOLDEN=1 pytest tests/unit/test_preview.py`, then read the diff.
"""

import json
import os
from pathlib import Path
from textwrap import dedent

import pytest

from processor.cli.main import main
from processor.cli.plan import empty, lines
from processor.definitions.load import load, read_directory
from processor.model.product import Definitions
from processor.planning import registry_plan
from processor.preview import preview
from processor.prices import DEFAULT
from processor.settings import Settings
from registry.edit import edit, edited
from registry.errors import DefinitionChanged, NeedsBackfill, NoSlot
from registry.model import Snapshot

GOLDEN = Path(__file__).parent / "golden"
EXAMPLE = Path(__file__).parents[2] / "examples" / "github"
ENTITIES = """
    user: {key: [id], columns: {id: int, name: string, ok: bool, city: string}}
    star: {key: [id], columns: {id: int, who: string, ok: bool}}
    fork: {key: [id], columns: {id: int, who: string}}
    """
STARS = """
    product: stars
    root: user
    fields: [id]
    embed:
      stars: {many: star, on: {who: name}, limit: 10, fields: [id]}
    """
FORKS = """
    product: forks
    root: user
    fields: [id]
    embed:
      forks: {many: fork, on: {who: name}, fields: [id], limit: 10}
    """
SAME = """
    product: same
    root: user
    fields: [id]
    embed:
      stars: {many: star, on: {ok: ok}, fields: [id]}
      deep:
        one: user
        on: {city: name}
        fields: [id]
        embed: {forks: {many: fork, on: {who: city}, fields: [id]}}
    """


def definitions(*products: str, entities: str = ENTITIES) -> Definitions:
    files = {f"{n}.yaml": dedent(text) for n, text in enumerate(products)}
    return load({"entities.yaml": dedent(entities), **files})


def stored(definitions: Definitions, slots: int = 20) -> Snapshot:
    """A registry after an apply of these definitions."""
    nothing = empty(Settings(slots=slots))
    return edited(nothing, edit(nothing, registry_plan(definitions), frozenset()))


def shown(definitions: Definitions, registry: Snapshot) -> str:
    return "\n".join(lines(preview(definitions, registry, frozenset(), Settings()), DEFAULT)) + "\n"


@pytest.mark.parametrize(
    ("name", "wanted", "registry"),
    [
        ("first", load(read_directory(EXAMPLE)), empty(Settings())),
        ("nothing", definitions(STARS, FORKS), stored(definitions(STARS, FORKS))),
        ("another_product", definitions(STARS, SAME), stored(definitions(STARS, FORKS))),
        ("changed_product", definitions(STARS.replace("who: name", "ok: ok")), stored(definitions(STARS))),
    ],
)
def test_a_plan_says_what_it_would_change_which_slots_it_takes_and_what_events_cost(
    name: str, wanted: Definitions, registry: Snapshot
) -> None:
    file = GOLDEN / f"plan_{name}.txt"
    if "UPDATE_GOLDEN" in os.environ:
        file.write_text(shown(wanted, registry))
    assert shown(wanted, registry) == file.read_text()


def test_prices_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--offline", "--no-price", "--definitions", str(EXAMPLE)]) == 0
    out = capsys.readouterr().out
    assert "price" not in out
    assert "slots:\n" in out


def test_a_refusal_names_what_could_be_freed() -> None:
    registry = stored(definitions(STARS), slots=1)
    with pytest.raises(NoSlot, match="retire and free one of these"):
        preview(definitions(STARS.replace("who: name", "ok: ok")), registry, frozenset(), Settings())


def test_what_rows_are_stored_under_is_refused() -> None:
    with pytest.raises(NeedsBackfill, match="entity user: GSI_2 holds ok would be new, but a job has run"):
        preview(definitions(STARS, SAME), stored(definitions(STARS)), frozenset({"user"}), Settings())
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
    assert cost["dollars_per_million"] == 1.875
    (tmp_path / "entities.yaml").write_text("user: {key: [idd], columns: {id: int}}\n")
    assert main(["plan", "--offline", "--json", "--definitions", str(tmp_path)]) == 1
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert errors == ["entities.yaml:1: entity `user` has no column `idd` for its `key`; did you mean 'id'?"]
    assert main(["plan", "--offline", "--definitions", str(EXAMPLE), "--slots", "1"]) == 1
    assert "no slot is free for" in capsys.readouterr().err
