"""The random products of the simulator have every word of the language; and sets of them, which operators edit, end right."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.expressions import AGGREGATES
from processor.language.definitions.shape import GROUP, JOIN, PART, PRODUCT, PUBLISH, THROUGH, UNION
from processor.language.product.expressions.catalogue import FUNCTIONS
from processor.language.product.expressions.expression import Aggregate, Built, Call, Depth
from processor.language.product.expressions.functions import FOLDS
from processor.language.product.join_fields import read_computed
from tests.integration.product.every_word import every_form
from tests.simulator.seeds import overrides_of, simulation_of
from tests.simulator.shapes import shape_of
from tests.simulator.simulate import simulate

SHAPES = {
    "every": 60,
    "drawn every": 2,
    "drawn routed": 3,
    "computed": 5,
    "grouped": 5,
    "clocked": 10,
    "ordered": 2,
    "drawn counted": 2,
}
"""The shapes of histories with random products, each with the number of its products that this test draws."""
ELSEWHERE = {
    **dict.fromkeys(
        ("product", "topic"), "each drawn product has a name and a topic, and edits move it to another topic"
    ),
    **dict.fromkeys(("description", "owner"), "for readers: no plan has them"),
    **dict.fromkeys(("publish", *PUBLISH), "`gated_products.draw_gate` draws the gates of mixed worlds as values"),
    **dict.fromkeys(
        ("sql", "flat"), "tests/integration/product/test_sql_texts.py draws queries, which become such trees"
    ),
    "format": "tests/unit/language/product/test_avro.py writes and reads random documents of random products in Avro",
    "compare": "a product of the registry has it: the shape `compared` draws the words of entities",
    "computed": "a product of the registry has it: the shape `computed` draws the columns of entities",
    "except": "a product of the registry has the other columns: `ListAuthor` writes it",
    "through": "a product of the registry says it by `on` with the name of the join between",
}
"""The words that no drawn product has, each with the reason, and what draws it."""
INSIDE = {
    "as letter", "as stored", "of scale", "of size", "without zeros", "without zone", "text without zone",
}  # fmt: skip
"""Functions that readers put around others, and no author names."""


def texts_of(value: Any) -> Iterator[str]:
    """The keys of all mappings in a description."""
    if isinstance(value, Mapping):
        yield from value
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_of(part)


def functions_of(value: Any) -> Iterator[str]:
    """The functions and aggregates in a part of a product."""
    match value:
        case Call(function=key):
            yield FUNCTIONS[key].name
        case Aggregate(function=name):
            yield name
        case Built(names=names):
            yield "array" if names is None else "object"
        case Depth():
            yield "depth"
        case str() if value.startswith("=") and (made := read_computed(value)):
            yield from functions_of(made.node)
    if isinstance(value, Mapping):
        value = (*value.keys(), *value.values())
    elif is_dataclass(value):
        value = [getattr(value, one.name) for one in fields(value)]
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from functions_of(part)


@pytest.mark.rest
def test_random_products_have_every_word_and_every_function_of_the_language() -> None:
    words: set[str] = set()
    functions = {*functions_of(every_form().products["p"])}
    for shape, count in SHAPES.items():
        for seed in range(count):
            for product in shape_of(f"{shape} {seed}").definitions.products.values():
                words |= {*texts_of(describe_product(product))}
                functions |= {*functions_of(product)}
    every = {*PRODUCT, *JOIN, *PART, *UNION, *THROUGH, *GROUP, *PUBLISH}
    assert every - words - {*ELSEWHERE} == set(), "draw them in tests/integration/product/every_word.py"
    assert {*ELSEWHERE} & words <= {"product", "topic", "compare", "computed"}, "they are drawn: remove their reasons"
    named = {function.name for function in FUNCTIONS.values()} | {*AGGREGATES} | {"array", "object", "depth"}
    named -= {name for name in named if name.split()[-1] in FOLDS}  # of the shape `compared`
    assert named - functions - INSIDE == {"avg"}, "add a form; `avg` is a sum by a count"


@pytest.mark.rest
@pytest.mark.parametrize(("kind", "seeds"), [("every", range(40)), ("every edits", range(6))])
def test_every_history_of_products_with_any_words_ends_right(kind: Any, seeds: range) -> None:
    runs = [simulate(n, overrides=overrides_of(n, kind), simulation_class=simulation_of(kind)) for n in seeds]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert kind == "every" or sum(run.facts["edits"] for run in runs) > 0
