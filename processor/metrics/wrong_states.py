"""What a person must repair, a line each, for `statestore status` and for `/health` of the driver's page.

A state is wrong if it stays until a person acts: a job died, or ended itself with an error, a product or a walk stopped, records
lack a column that a product reads, the job refuses a registry version, none of its topics exists, or the job reports nothing any
more. Dead letters are counted and are not wrong: `rejects list` shows those that wait.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from processor.wording.durations import duration_text
from registry.model import JobStatus, RunEnd

SILENT_SECONDS = 60.0
"""A living job whose report is older is wrong: it reports every 5 s."""


def wrong_lines(job: JobStatus) -> Iterator[str]:
    """What a person must repair, a line each."""
    if not job.alive:
        yield from _wrong_end(job)
        return
    if (job.report_age or 0.0) > SILENT_SECONDS:
        silence = duration_text(job.report_age or 0.0)
        yield f"job {job.job} renews its lease, and has reported nothing for {silence}; see its log"
    yield from wrong_in_report(job.report or {})


def _wrong_end(job: JobStatus) -> Iterator[str]:
    """Why a person must act after the end of the last run."""
    match job.last_end:
        case RunEnd(how="killed") as end:
            yield f"job {job.job} died: {end.owner} gave no sign of life since {moment(end.at)}; start it again"
        case RunEnd(how="failed") as end:
            yield f"job {job.job} failed at {moment(end.at)}: {end.text}; then start it again"
        case RunEnd(how="lost") as end:
            yield f"job {job.job} does not run: {end.owner} lost its lease to a run that has ended; start it again"


def wrong_in_report(state: Mapping[str, Any]) -> Iterator[str]:
    """What a person must repair by the report of a job that lives."""
    for product, why in state.get("stopped_products", {}).items():
        yield f"product {product} stopped: {why}"
    for product, count in state.get("unfit_documents", {}).items():
        yield (
            f"product {product}: {count:,} documents do not fit its topic, which shows earlier ones: `statestore rejects list "
            "--each` says why and what to do; then start the job again"
        )
    for walk, why in state.get("stopped_walks", {}).items():
        yield f"{walk} stopped: {why}"
    yield from (one["text"] for one in state.get("absent_columns", {}).values() if one["loud"])
    yield from (state[name] for name in ("refusal", "no_topic") if state.get(name))


def moment(at: datetime) -> str:
    """A time on the clock of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
