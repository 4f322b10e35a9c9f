"""A document on a terminal, and in a file."""

import argparse
import sys

import pytest

from processor.cli.printing.terminal import document_text

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
