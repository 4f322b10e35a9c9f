"""A small chart of a value over time, as the points of a line in SVG. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from processor.wording.durations import duration_text

WIDTH: Final = 240
HEIGHT: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallChart:
    """A chart. `points`: of the line, for SVG; `text`: what the chart shows, in words."""

    name: str
    points: str
    text: str


def small_chart(name: str, times: Sequence[float], values: Sequence[float]) -> dict[str, Any]:
    """The chart of these values at these times; at least two of them."""
    begin, length, most = times[0], max(times[-1] - times[0], 1.0), max(*values, 1.0)
    places = [
        (WIDTH * (at - begin) / length, HEIGHT - HEIGHT * value / most) for at, value in zip(times, values, strict=True)
    ]
    text = f"{name} in the last {duration_text(length)}: {min(values):g} to {max(values):g}, {values[-1]:g} at the end"
    return asdict(SmallChart(name=name, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), text=text))
