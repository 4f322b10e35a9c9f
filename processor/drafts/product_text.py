"""Writes a draft of a product: a root, and the joins by which other entities refer to it or it refers to them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from processor.drafts.draft import DraftEntity, ForeignKey
from processor.drafts.yaml_words import comment, flow_list, flow_map, word

LIMIT = 100
"""The `limit` of a drafted list: a `many` without one grows with its rows."""


class _Link(NamedTuple):
    """A join of a draft: to `entity`, by `reference`, which `entity` has (`many`) or its parent has."""

    entity: str
    many: bool
    reference: ForeignKey


def product_name(root: str) -> str:
    """The name of the drafted product, which is no topic of an entity."""
    return f"{root}_document"


def product_text(entities: Sequence[DraftEntity], root: str, depth: int, header: Sequence[str]) -> str:
    """The text of a product file with `depth` levels of joins below the root. Raises KeyError for a root that is no whole
    entity."""
    whole = {entity.name: entity for entity in entities if entity.is_whole}
    lines = [*header, f"product: {word(product_name(root))}", f"root: {word(root)}"]
    lines += _level(whole[root], whole, depth, ())
    return "\n".join(lines) + "\n"


def _level(
    entity: DraftEntity, whole: Mapping[str, DraftEntity], depth: int, above: tuple[_Link, ...]
) -> Iterator[str]:
    """The lines of a level: its fields, and its embeds. `above`: the joins that lead to the level. It does not go the last one
    back. Below a row that others refer to, too, it follows no list: that would be the rows of others, such as the mail of all
    customers of a shop."""
    columns = [name for name, column in entity.columns.items() if column.type]
    yield f"fields: {flow_list(columns)}"
    rose, back = any(not link.many for link in above), above[-1].reference if above else None
    links = [link for link in _links(entity, whole) if link.reference is not back and not (rose and link.many)]
    if depth < 1 or not links:
        return
    yield "embed:"
    taken = set(columns)
    for link in links:
        name = _free_name(link, taken)
        taken.add(name)
        yield f"  {word(name)}:"
        sides = (link.reference.columns, link.reference.parent_columns)
        on = dict(zip(*(sides if link.many else sides[::-1]), strict=True))
        yield f"    {'many' if link.many else 'one'}: {word(link.entity)}"
        guess = comment(f"guess: {link.reference.guess}" if link.reference.guess else "")
        yield f"    on: {flow_map(on)}{f'  {guess}' if guess else ''}"
        if link.many:
            yield f"    limit: {LIMIT}"
        yield from (f"    {line}" for line in _level(whole[link.entity], whole, depth - 1, (*above, link)))


def _links(entity: DraftEntity, whole: Mapping[str, DraftEntity]) -> Iterator[_Link]:
    """The joins of an entity: first to the rows that it refers to, then to the rows that refer to it."""
    for reference in entity.references:
        if reference.links(entity, whole.get(reference.parent)):
            yield _Link(reference.parent, False, reference)
    for child in whole.values():
        for reference in child.references:
            if reference.parent == entity.name and reference.links(child, entity):
                yield _Link(child.name, True, reference)


def _free_name(link: _Link, taken: set[str]) -> str:
    """The name of an embed: that of its entity; with its column where the name is taken."""
    column = "_".join(link.reference.columns)
    names = [link.entity, f"{link.entity}_by_{column}", *(f"{link.entity}_by_{column}_{n}" for n in range(2, 100))]
    return next(name for name in names if name not in taken)
