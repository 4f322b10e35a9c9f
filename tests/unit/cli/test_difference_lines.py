"""The report of `verify`: groups by field, with the first documents and the values that differ."""

import json
from typing import Any

from processor.cli.verify import difference_lines
from processor.tools.inspect.verification import Difference


def difference(n: int, published: Any, state: Any, **more: Any) -> Difference:
    one, other = (None if value is None else json.dumps(value).encode() for value in (published, state))
    facts = {"product": "people", "key": f'{{"id":{n}}}', "root": str(n), "published": one, "state": other, **more}
    return Difference(**facts)


def test_documents_that_differ_in_one_field_are_one_group_with_its_first_five() -> None:
    found = [
        difference(n, {"id": n, "tags": [{"a": 1}, {"a": n}]}, {"id": n, "tags": [{"a": 1}, {"a": 0}]})
        for n in range(1, 8)
    ]
    lines = list(difference_lines(found, sql=False))
    assert lines[:5] == [
        "people: differs in tags[].a: 7 documents",
        '  {"id":1}',
        "    tags[1].a",
        "      published 1",
        "      state     0",
    ]
    assert lines[-1] == "  and 2 more (--json shows all)"
    assert len(lines) == 1 + 5 * 4 + 1


def test_each_kind_of_difference_is_a_group() -> None:
    found = [
        difference(1, None, {"id": 1}),
        difference(2, {"id": 2}, None),
        difference(3, {"id": 3}, None, root=None),
        difference(4, {"id": 4, "name": "x" * 200}, {"id": 4}),
        difference(5, {"id": 5}, {"id": 5}, stale=False, refuted=True, sql=b'{"id":6}'),
        difference(6, {"tags": ["a", "b"]}, {"tags": ["a", "c"]}, refuted=True, sql=b'{"tags":["a"]}'),
    ]
    text = "\n".join(difference_lines(found, sql=True))
    assert [line for line in text.splitlines() if line.startswith("people")] == [
        "people: never published, or deleted in the topic: 1 document",
        "people: published, but the state has no document: 1 document",
        "people: the key is not a key of the root: another program writes to this topic: 1 document",
        "people: differs in name: 1 document",
        "people: differs in id: 1 document",
        "people: differs in tags[]: 1 document",
    ]
    assert max(map(len, text.splitlines())) < 120
    assert "      state     no value\n" in text
    assert "    id\n      published 5\n      state     5\n      sql       6\n" in text
    assert text.endswith('    tags[1]\n      published "b"\n      state     "c"\n      sql       no value')
