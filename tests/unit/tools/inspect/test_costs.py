"""What the registry saves without a product."""

from decimal import Decimal

from processor.environment.settings.settings import Settings
from processor.tools.inspect.preview import preview, savings_without
from processor.tools.inspect.price import columns_of
from processor.tools.inspect.prices import DEFAULT
from tests.unit.tools.inspect.previews import FORKS, STARS, definitions, stored

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
