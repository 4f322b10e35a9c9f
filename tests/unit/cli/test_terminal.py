"""What a terminal shows: the progress bar, and a document."""

import argparse
import io
import sys

import pytest

from processor.cli.printing.output import ProgressBar, document_text


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_of(*shows: tuple[float, str, int, int | None]) -> list[str]:
    """The lines in a file after each call, with its time."""
    stream, clock = io.StringIO(), Clock()
    bar = ProgressBar(stream, clock)
    for clock.now, phase, done, total in shows:
        bar.show(phase, done, total, about=phase == "copy")
    bar.close()
    return stream.getvalue().splitlines()


def test_a_file_gets_a_line_every_10_s_and_one_at_the_end_of_a_phase() -> None:
    times = [float(n) for n in range(25)]
    assert lines_of(*((now, "copy", int(now) * 100, 2_400) for now in times), (25.0, "compare", 0, 2_400)) == [
        "copy: 1,000 of about 2,400 items, 41 %, 100/s, 0:00:14 left",
        "copy: 2,000 of about 2,400 items, 83 %, 100/s, 0:00:04 left",
        "copy: 2,400 of about 2,400 items, 100 %, 100/s, 0:00:00 left",
        "compare: 0 of 2,400 items, 0 %",
    ]


def test_without_a_total_or_with_one_that_is_too_low_a_line_has_no_share_and_no_time() -> None:
    assert lines_of((0, "one", 0, None), (2, "one", 3_000, None)) == ["one: 3,000 items, 1,500/s"]
    assert lines_of((0, "copy", 0, 10), (2, "copy", 11, 10)) == ["copy: 11 items, 6/s"]
    assert lines_of((0, "none", 0, 0)) == ["none: 0 items"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_of_70_columns_has_one_bar_for_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    terminal, clock = Terminal(), Clock()
    bar = ProgressBar(terminal, clock)
    for clock.now, done in ((0.0, 0), (10.0, 5_000), (20.0, 10_000)):
        bar.show("copy", done, 10_000)
    bar.show("compare", 1, 10_000, note=", waits for 7 entries of indexes")
    bar.close()
    first, second, end = terminal.getvalue().split("\n")
    assert [state.rstrip() for state in first.split("\r")] == [
        "",
        "copy [---------------------------------------] 0 of 10,000 items, 0 %",
        "copy [######-------] 5,000 of 10,000 items, 50 %, 500/s, 0:00:10 left",
        "copy [###########] 10,000 of 10,000 items, 100 %, 500/s, 0:00:00 left",
    ]
    assert second.strip() == "compare [----] 1 of 10,000 items, 0 %, waits for 7 entries of indexes"
    assert end == ""
    assert {len(state) for line in (first, second) for state in line.split("\r")} == {0, 69}


VALUE = '{"n":1.50,"name":"A\\u001b[2Jda","of":["é"]}'.encode()


@pytest.mark.parametrize(("pretty", "terminal"), [(False, False), (True, False), (False, True)])
def test_people_get_a_line_for_each_member(pretty: bool, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    shown = document_text(VALUE, argparse.Namespace(pretty=pretty))
    if pretty or terminal:
        assert shown.splitlines() == [
            "{",
            '  "n": 1.50,',
            '  "name": "A\\u001b[2Jda",',
            '  "of": [',
            '    "é"',
            "  ]",
            "}",
        ]
    else:
        assert shown == VALUE.decode()
