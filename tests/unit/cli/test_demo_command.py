"""What the demo prints: its steps, and documents that a person can read."""

from typing import Any

from processor.cli.demo_command import print_step
from processor.demo.report import readable_lines


def test_a_step_says_how_many_there_are(capsys: Any) -> None:
    print_step(3, "producing records")
    assert capsys.readouterr().err == "step 3 of 5: producing records\n"


def test_a_document_has_a_line_for_each_member_and_ends_early_if_it_is_long() -> None:
    assert list(readable_lines({"name": "é", "stars": [1]})) == [
        "     {",
        '       "name": "é",',
        '       "stars": [',
        "         1",
        "       ]",
        "     }",
    ]
    *_, last = readable_lines(list(range(100)))
    assert last == "     ... 62 more lines"
