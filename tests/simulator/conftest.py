"""Lets the simulator's modules import each other as `tests.simulator.*`, however pytest was started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
