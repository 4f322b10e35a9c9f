"""Lets the simulator's modules import each other as `tests.simulator.*`, for any way to start pytest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
