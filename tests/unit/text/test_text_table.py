"""Tables fit the terminal, where there is one."""

import pytest

from processor.text import fitted, table_lines

ROWS = [["star", "GSI_1", "down from user; up from repo; up from payment_info"], ["user", "GSI_2", "up from star"]]


def test_the_last_column_wraps_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert fitted(ROWS) == ROWS
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert [f"  {line}" for line in table_lines(fitted(ROWS, indent=2))] == [
        "  star  GSI_1  down from user; up from",
        "               repo; up from",
        "               payment_info",
        "  user  GSI_2  up from star",
    ]
    assert fitted([], indent=2) == []
