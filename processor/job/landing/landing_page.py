"""What the port of a landing shows (`land --status-port`): its figures for a person, and as metrics."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from time import time
from typing import Any

from processor.engine.rounds.troubles import trouble_line
from processor.job.landing.landing import Landing, landed_text
from processor.job.metrics.metrics import LANDING_METRICS, read_metrics
from processor.job.metrics.status_page import Pages, RunState, metrics_text


def landing_state(landing: Landing) -> Callable[[], RunState]:
    """Reads the state of a landing that runs."""

    def read() -> RunState:
        now = time()
        troubles = landing.troubles.now
        report = {
            "product": landing.product,
            "place": landing.target.place,
            "behind": landing.behind,
            "landed_at": landing.landed_at,
            "at": now,
            "counts": dict(landing.tally),
            "troubles": [one.part for one in troubles],
        }
        return RunState(report, (), tuple(trouble_line(one, now) for one in troubles))

    return read


def _page(report: Mapping[str, Any] | None, wrong: Sequence[str], degraded: Sequence[str]) -> str:
    state = report or {}
    lines = [f"landing of {state['product']} in {state['place']}", landed_text(state["counts"])]
    lines += [f"{state['behind']:,} messages behind", *wrong, *(f"degraded: {line}" for line in degraded)]
    return f"<!doctype html><title>statestore land</title><pre>{escape(chr(10).join(lines))}</pre>\n"


def _metrics(report: Mapping[str, Any]) -> bytes:
    return metrics_text(LANDING_METRICS, read_metrics(report, LANDING_METRICS))


LANDING_PAGES = Pages(_page, _metrics)
