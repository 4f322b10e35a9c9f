"""Definitions written in a test, and three entities that many of them join: people, cities and visits."""

from textwrap import dedent

from processor.language.definitions.load import load
from processor.language.product.product import Definitions

PEOPLE = """
    person:
      key: [id]
      columns: {id: int, name: string, boss: int, city: string}
    city:
      key: [name]
      columns: {name: string, country: string, mayor: int}
    visit:
      key: [person, number]
      columns: {person: int, number: int, city: string, at: timestamp, rating: decimal}
"""


def definitions(entities: str, product: str) -> Definitions:
    return load({"entities.yaml": dedent(entities), "product.yaml": dedent(product)})
