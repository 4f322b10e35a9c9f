"""A terminal obeys no text of others: of a dead letter, a document, a product, the registry or an error."""

import json
from datetime import UTC, datetime
from io import StringIO

import pytest

from processor.cli.main import main
from processor.cli.printing.output import JobLog
from processor.cli.verify import difference_lines
from processor.engine.rounds.events import JobEvent
from processor.errors import StatestoreError
from processor.text import visible, visible_line
from processor.tools.inspect.verification import Difference
from tests.unit.cli.job_state import STATE

ATTACKS = ["\x1b]0;title\x07", "\x1b[2J", "\r\x1b[K", "\u009b31m", "\u202egnp.exe", "\u2066x", "\x00", "\x7f", "\ud800"]
OBEYED = "".join(map(chr, [*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_line_shows_the_code_of_what_a_terminal_would_obey(attack: str) -> None:
    shown = visible_line(f"a{attack}b\nc")
    assert not set(shown) & set(OBEYED)
    assert shown.startswith("a")
    shown.encode()
    assert json.loads(f'"{shown}"') == f"a{attack}b\nc"


def test_ordinary_text_stays_as_it_is() -> None:
    text = "naïve 日本語 😀 'a' \\ €\nsecond line"
    assert visible(text) == text


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_line_of_a_job_is_one_line_without_them(form: str, attack: str) -> None:
    letter = f"t/0 offset 1: {attack}\n2026-11-22T00:00:00 info    all is well"
    stream = StringIO()
    log = JobLog(form=form, stream=stream, clock=lambda: datetime(2026, 11, 22, tzinfo=UTC))
    log(JobEvent(what="dead letters", text=f"1 dead letters, the last: {letter}", level="warning"))
    log(JobEvent(what="status", fields={**STATE, "dead_letters": 1, "last_dead_letter": letter}))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert not set("".join(lines)) & set(OBEYED)


def test_an_error_keeps_its_lines_and_shows_no_control_character(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise StatestoreError("product \x1b[2Jx: first\nsecond")

    monkeypatch.setattr("processor.cli.look.chosen_plan", fail)
    assert main(["explain", "x"]) == 1
    assert capsys.readouterr().err == "statestore explain: product \\u001b[2Jx: first\nsecond\n"


@pytest.mark.parametrize("document", [b"\x1b[2J no JSON", '{"a":"\u009b2J","\u202e":1}'.encode()])
def test_a_report_of_verify_shows_the_codes(document: bytes) -> None:
    found = Difference(product="p", key="k\x1b[2J", root=None, published=document, state=b'{"a":"b"}', sql=None)
    assert not set("".join(difference_lines([found], sql=False))) & set(OBEYED)
