"""The codes of reasons: stable, each with its meaning and its cure in the documentation."""

import re
from pathlib import Path
from typing import get_args

from processor.values.reasons import REASONS, SEND_AGAIN, ReasonCode, known_code

PAGE = Path(__file__).parents[3] / "docs" / "dead-letters.md"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_page_has_each_code_with_its_meaning_and_its_cure() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    short = {code: reason.cure.replace(SEND_AGAIN, "*send again*") for code, reason in REASONS.items()}
    assert rows == [(code, reason.meaning, short[code]) for code, reason in REASONS.items()]


def test_each_code_has_a_reason() -> None:
    assert tuple(REASONS) == get_args(ReasonCode)
    assert [known_code(code) for code in REASONS] == list(REASONS)
    assert known_code("") == known_code("column type") == "other"
