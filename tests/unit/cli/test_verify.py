"""`statestore verify`: what it prints of documents that differ, or that SQL cannot show."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli import verify
from processor.cli.main import main
from processor.cli.verify import difference_lines
from processor.tools.inspect.verification import Difference, NotCompared, VerificationResult
from statestore.memory import MemoryStore

REASON = "note 7: column text has a NUL character, which Postgres cannot hold"
COMMAND = ["verify", "notes", "--sql", "--bootstrap-servers", "nowhere:1"]


@pytest.fixture(params=[True, False])
def not_compared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether one of three documents was not compared with SQL."""

    @contextmanager
    def verifier(*_: Any) -> Iterator[None]:
        yield None

    left = (NotCompared(product="notes", key='{"id":1}', reason=REASON),) if request.param else ()
    result = VerificationResult(compared=3, differences=(), not_compared=left)
    plan = SimpleNamespace(products={"notes": None})
    monkeypatch.setattr(verify, "stored_state", lambda _: nullcontext((plan, MemoryStore())))
    monkeypatch.setattr(verify, "_verifier", verifier)
    monkeypatch.setattr(verify, "_verify_product", lambda *_: result)
    return bool(request.param)


def test_the_exit_status_claims_no_equality_for_what_was_not_compared(not_compared: bool, capsys: Any) -> None:
    assert main(COMMAND) == int(not_compared)
    printed = capsys.readouterr()
    assert printed.out == (f'notes {{"id":1}}\n  not compared with SQL: {REASON}\n' if not_compared else "")
    without = ", 1 of them not with SQL" if not_compared else ""
    assert printed.err == f"notes: 3 documents compared{without}, 0 differ\n"


def test_json_counts_what_was_not_compared(not_compared: bool, capsys: Any) -> None:
    assert main([*COMMAND, "--json"]) == int(not_compared)
    found = json.loads(capsys.readouterr().out)["products"]["notes"]
    left = [{"key": '{"id":1}', "reason": REASON}] if not_compared else []
    assert found == {
        "compared": 3,
        "unpublished": 0,
        "older_version": 0,
        "waiting": 0,
        "differences": [],
        "not_compared_with_sql": left,
    }


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


def test_a_header_that_differs_has_its_name_and_both_texts() -> None:
    headers = {"published_headers": (("tenant", b"8"),), "state_headers": (("tenant", b"7"), ("city", b"Bonn"))}
    lines = list(difference_lines([difference(1, {"id": 1}, {"id": 1}, **headers)], sql=False))
    assert lines == [
        "people: differs in header tenant, header city: 1 document",
        '  {"id":1}',
        "    header tenant",
        "      published 8",
        "      state     7",
        "    header city",
        "      published no value",
        "      state     Bonn",
    ]
