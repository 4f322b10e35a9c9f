"""The report of a job that has run for some hours, as its monitor would write it."""

from collections import Counter
from math import sin
from typing import Any, Final

from processor.counts import ASSEMBLED_OF, BATCH, BYTES_OF, READS_OF, RENDER_OF, STAGE, STAGES, WRITES_OF
from processor.engine.rounds.round_counts import count_ages
from processor.job.run.monitor import MOST_SAMPLES, RANGES
from processor.text import DAY, HOUR
from tests.integration.web.console.conftest import JOB
from tests.unit.cli.job_state import STATE

RUN_SECONDS: Final = 5.4 * HOUR
EVENTS_A_SECOND: Final = {"article": 0.2, "customer": 1.1, "order": 9.4, "order_line": 24.0}
MESSAGES_A_SECOND: Final = {"order_enriched": 31.5, "customer_orders": 12.2}
WORK_OF_A_MESSAGE: Final = {ASSEMBLED_OF: 1.4, BYTES_OF: 640, WRITES_OF: 1_000, READS_OF: 5_200, RENDER_OF: 58}
WRITTEN, READ = 2.46, 3.17
"""Units of an event, as in docs/costs.md."""


def staged_report(now: float, version: int) -> dict[str, Any]:
    """The report of this moment."""
    rate = sum(EVENTS_A_SECOND.values())
    counts = _counts(RUN_SECONDS) | count_ages([0.4 + (n % 40) / 25 for n in range(5_000)])
    return STATE | {
        "job": JOB,
        "statestore": "0.1.0",
        "registry_version": version,
        "at": now,
        "began": now - RUN_SECONDS,
        "topics": {
            topic: {"records": n * 3, "seconds": n and 0.6 + n, "retention": 604_800.0}
            for n, topic in enumerate(EVENTS_A_SECOND)
        },
        "events_per_second": round(rate, 1),
        "documents_per_second": round(sum(MESSAGES_A_SECOND.values()), 1),
        "last_batch": {"number": 9_031, "at": now - 1.2, "records": 71, "documents": 88},
        "open_changes": 214,
        "backlog": 0,
        "gates": {"order_enriched": {"waiting": 3, "since": now - 4, "transaction": None}},
        "walks": ["fill order_line"],
        "dead_letters": 7,
        "last_dead_letter": "order_line/0 offset 2000 epoch 1: column 'quantity': expected int, found text",
        "charts": {
            name: [
                [
                    round(now - seconds * n / MOST_SAMPLES),
                    round(rate + 9 * sin(n / 5), 1),
                    round(40 + 12 * sin(n / 7), 1),
                    round(1.6 + 0.8 * sin(n / 3), 1),
                    max(0, 3 * (n - 45)),
                ]
                for n in reversed(range(MOST_SAMPLES))
            ]
            for name, seconds in RANGES.items()
        },
        "counts": dict(counts),
        "last_hour": {"seconds": float(HOUR), "counts": _counts(HOUR)},
        "last_day": {"seconds": min(RUN_SECONDS, float(DAY)), "counts": _counts(RUN_SECONDS)},
    }


def _counts(seconds: float) -> Counter[str]:
    events = sum(EVENTS_A_SECOND.values()) * seconds
    counts = Counter({f"messages of {name}": round(rate * seconds) for name, rate in MESSAGES_A_SECOND.items()})
    for prefix, each in WORK_OF_A_MESSAGE.items():
        counts.update({f"{prefix}{name}": round(each * rate * seconds) for name, rate in MESSAGES_A_SECOND.items()})
    counts.update({f"applied in {topic}": round(rate * seconds) for topic, rate in EVENTS_A_SECOND.items()})
    for name, units in (("UpdateItem", WRITTEN), ("BatchGetItem", 0.6 * READ), ("Query", 0.4 * READ)):
        counts.update({f"half units {name}": round(2 * units * events), f"request {name}": round(units * events)})
    counts.update({f"{STAGE}{name}": round(seconds * 90) for name in (BATCH, *STAGES)})
    counts.update(read=round(events), published=round(sum(MESSAGES_A_SECOND.values()) * seconds))
    return counts
