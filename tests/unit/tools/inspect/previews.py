"""Definitions, and the registries and statistics with which the tests of `plan` price them."""

from datetime import UTC, datetime
from textwrap import dedent

from processor.cli.choices import empty_registry
from processor.engine.plan.planning import requirements_of
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.model import Direction, EntityStatistics, JoinStatistics, Snapshot, Statistics

ENTITIES = """
    user: {key: [id], columns: {id: int, name: string, ok: bool, city: string}}
    star: {key: [id], columns: {id: int, who: string, ok: bool}}
    fork: {key: [id], columns: {id: int, who: string}}
    """
SHARDED = ENTITIES.replace("user: {", "user: {shards: 2, ")
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
    nothing = empty_registry(Settings(slots=slots))
    return edited(nothing, apply(nothing, requirements_of(definitions), frozenset()))


def statistics(registry: Snapshot, joins: dict[tuple[str, Direction], tuple[float, int, str]]) -> Statistics:
    """Statistics of 1,000,000 rows of 400 bytes each, and of joins by (child, direction)."""
    return Statistics(
        taken_at=datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
        entities=tuple(
            EntityStatistics(entity=entity.name, rows=1_000_000, mean_bytes=400, most_bytes=900)
            for entity in registry.entities
        ),
        joins=tuple(
            JoinStatistics(join=access.join, direction=direction, mean=mean, most=most, value=value)
            for access in registry.joins
            for (child, direction), (mean, most, value) in joins.items()
            if access.join.child == child
        ),
    )
