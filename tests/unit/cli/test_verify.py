"""`statestore verify --sql`: its exit status and its output for documents that SQL could not answer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli import verify
from processor.cli.main import main
from processor.tools.inspect.verification import NotCompared, VerificationResult
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
