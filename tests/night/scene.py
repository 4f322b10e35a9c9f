"""The night, as a scripted scene: a real job, Prometheus and a browser, and the five voices at each moment of each event.

    python -m tests.night.scene --only "kill -9" --page tests/night/seen.md

The parts are real: embedded Kafka and Postgres, each behind a proxy, and `statestore run` as a process. Prometheus has the rules
that ship, with shorter times (`voices.scaled_rules`). Exit status 1 if a voice is wrong.
"""

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import pytest

from processor.cli.options import set_embedded_credentials
from processor.environment.embedded import owned_home
from tests.night.events import EVENTS, Lacking, Moment
from tests.night.night_job import Night
from tests.night.page import Seen, night_page
from tests.night.voices import (
    VOICES,
    OpenPage,
    Prometheus,
    Reading,
    console,
    prometheus,
    read_console,
    read_health,
    read_log,
    read_status,
    shown_to_people,
)
from tests.outages.outage_parts import REGISTRY, Server, kafka, postgres
from tests.support.required import required_browser, required_program

PAUSE = 1.0
"""Seconds between two looks at the voices."""
RECENT_SECONDS = 10.0
"""A job is well if its log has no warning in these seconds, and no part of it is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ears:
    """The voices of a job."""

    night: Night
    console: str
    alerts: Prometheus
    page: OpenPage

    def read(self, since: float) -> dict[str, Reading]:
        """Reads all of them. `since`: of the log."""
        self.alerts.aim(self.night.job.port)
        readings = (
            read_status(self.night),
            read_health(self.night),
            shown_to_people(read_console(self.console), self.page.read()),
            self.alerts.read(),
            read_log(self.night, since),
        )
        return dict(zip(VOICES, readings, strict=True))


def faults(moment: Moment, readings: dict[str, Reading]) -> tuple[str, ...]:
    """What is wrong at a moment, a line each."""
    allowed = {"yes": ("amber", "red", "silent"), "no": ("green", "amber", "silent"), "well": ("green",)}[moment.act]
    found = [
        f"{voice} is {reading.colour}: {reading.words}"
        for voice, reading in readings.items()
        if reading.colour not in allowed
    ]
    for voice in ("status", "console"):
        found += [
            f"{voice} lacks the words {word!r}: {readings[voice].words}"
            for word in moment.words
            if word not in readings[voice].whole
        ]
    return tuple(found)


def look(ears: Ears, event: str, moment: Moment, since: float) -> Seen:
    """Reads the voices of a moment, until they agree; or as long as it lasts, and then its worst reading counts."""
    began, worst = monotonic(), None
    while True:
        readings = ears.read(_log_since(moment, ears.night, since))
        seen = Seen(
            event=event,
            moment=moment,
            readings=readings,
            seconds=monotonic() - began,
            faults=faults(moment, readings),
        )
        if moment.lasts is None:
            if not seen.faults or seen.seconds > moment.within:
                return seen
        else:
            worst = seen if worst is None or len(seen.faults) >= len(worst.faults) else worst
            if not moment.lasts():
                return worst
        sleep(PAUSE)


def _log_since(moment: Moment, night: Night, began: float) -> float:
    """From when on a person reads the log: from the event's begin; where nothing is to be done, from the last start on."""
    if moment.act == "well":
        return time() - RECENT_SECONDS
    starts = [line.at for line in list(night.job.lines) if line.event == "open"]
    return max(began, *starts) if moment.act == "no" and starts else began


def play(name: str, night: Night, ears: Ears) -> Iterator[Seen]:
    """Plays an event."""
    began = time()
    for moment in EVENTS[name].play(night):
        yield look(ears, name, moment, began)


@contextmanager
def browser(path: str) -> Iterator[Any]:
    """Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


def run_event(name: str, number: int, home: Path, servers: Sequence[Server], program: str, chromium: Any) -> list[Seen]:
    """Runs an event on a job of its own. An event that fails is a moment with a fault."""
    broker, database = servers
    seen: list[Seen] = []
    night = Night(f"night{number}", home / f"night{number}", broker, database)
    with ExitStack() as stack:
        stack.enter_context(night.at_end)
        try:
            EVENTS[name].prepare(night)
            night.start()
            alerts = stack.enter_context(prometheus(program, night.folder / "prometheus"))
            address = stack.enter_context(console(night))
            context = chromium.new_context()
            stack.callback(context.close)
            ears = Ears(night=night, console=address, alerts=alerts, page=OpenPage(context.new_page(), address))
            before = look(ears, name, Moment(name="before", act="well", within=180), time())
            if before.faults:
                seen.append(before)
            for one in play(name, night, ears):
                seen.append(one)
                print(text_of(one), file=sys.stderr, flush=True)
        except Lacking as lacking:
            moment = Moment(name=f"not played: {lacking}", act="well")
            missing = (str(lacking),) if os.environ.get("CI") else ()
            seen.append(Seen(event=name, moment=moment, readings={}, seconds=0.0, faults=missing))
        except Exception as error:
            traceback.print_exc()
            moment = Moment(name="not played to its end", act="well")
            seen.append(Seen(event=name, moment=moment, readings={}, seconds=0.0, faults=(f"{error!r}",)))
    return seen


def text_of(seen: Seen) -> str:
    """A moment as lines for the progress."""
    lines = [f"== {seen.event}: {seen.moment.name} (act: {seen.moment.act}), {seen.seconds:.0f} s"]
    lines += [f"   {voice:8}{one.colour:7}{one.words[:300]}" for voice, one in seen.readings.items()]
    return "\n".join([*lines, *(f"   WRONG {fault[:400]}" for fault in seen.faults)])


def write_page(page: Path, seen: Sequence[Seen], private: Sequence[str]) -> None:
    """Puts these moments into the page."""
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    page.write_text(night_page(before, seen, day, private), encoding="utf-8")


def main() -> int:
    """Plays the events."""
    options = argparse.ArgumentParser(prog="tests.night.scene", description="Reads the five voices through a night.")
    options.add_argument("--only", action="append", choices=sorted(EVENTS), metavar="NAME", help=", ".join(EVENTS))
    options.add_argument("--page", type=Path, help="the file that gets the table")
    given = options.parse_args()
    try:
        program, chromium = required_program("prometheus", "`apt-get install prometheus`"), required_browser()
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))
    set_embedded_credentials()
    seen: list[Seen] = []
    with owned_home() as (home, _), ExitStack() as stack:
        home.chmod(0o755)  # under root the servers are another user
        servers = [kafka(home), postgres(REGISTRY, home)]
        for server in servers:
            stack.callback(server.close)
        shown = stack.enter_context(browser(chromium))
        try:
            for number, name in enumerate(given.only or EVENTS):
                played = run_event(name, number, home, servers, program, shown)
                seen += played
                if given.page:
                    write_page(given.page, played, [str(home)])
                for server in servers:
                    server.repair()
        finally:
            kept = Path(tempfile.mkdtemp(prefix="statestore-night-"))
            for log in home.glob("night*/job.log"):
                shutil.copy(log, kept / f"{log.parent.name}.log")
            print(f"the logs of the jobs are in {kept}", file=sys.stderr)
    found = [f"{one.event}, {one.moment.name}: {fault}" for one in seen for fault in one.faults]
    print(f"{len(seen)} moments, {len(found)} faults")
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
