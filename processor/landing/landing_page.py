"""What the port of a landing shows (`land --status-port`): its figures for a person, and as metrics."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from time import time
from typing import Any

from processor.landing.landing import Landing, landed_text
from processor.metrics.metrics import LANDING_METRICS
from processor.metrics.prometheus_text import metrics_text
from processor.metrics.read_metrics import Values
from processor.metrics.status_server import Pages, RunState
from processor.rounds.troubles import trouble_line

OUTCOMES = ("landed", "deleted", "refused", "superseded", "foreign")


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
    landed_at = report["landed_at"]
    values: dict[str, Values] = {
        "landing_messages_total": {(name,): report["counts"].get(name, 0) for name in OUTCOMES},
        "landing_lag_messages": {(): report["behind"]},
        "landing_last_seconds": {} if landed_at is None else {(): report["at"] - landed_at},
        "landing_troubles": {(part,): 1 for part in report["troubles"]},
    }
    return metrics_text(LANDING_METRICS, {f"statestore_{name}": found for name, found in values.items()})


LANDING_PAGES = Pages(_page, _metrics)
