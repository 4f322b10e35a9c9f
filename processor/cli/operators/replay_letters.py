"""`statestore rejects replay`: decodes dead letters again and applies them. The running job does it, on request. Without a
running job the verb is a run of its own."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from processor.cli.operators.ask_for_replay import ask, living_job, withdraw
from processor.cli.operators.stored_letters import waiting_letters
from processor.cli.options import reachable_settings
from processor.counts import Count
from processor.engine.protocol.replays import ReplayReport
from processor.environment.settings.open_registry import open_registry
from processor.job.run.dead_letters import record_position
from processor.text import visible_line

if TYPE_CHECKING:
    from processor.environment.settings.settings import Settings
    from processor.values.dead_letters import DeadLetter
    from registry.repository import Registry


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of a replay."""
    parser.add_argument("--take-over", action="store_true", help="do not ask the running job: take over from it")
    parser.add_argument("--why", metavar="REASON", default="", help="for those who look at the request while it waits")
    parser.add_argument(
        "--withdraw", metavar="N", type=int, help="withdraw request N, which the running job has not done yet"
    )
    parser.set_defaults(run=run_replay)


def run_replay(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings:
        if options.withdraw is not None:
            with open_registry(settings) as registry:
                return withdraw(registry, options.withdraw)
        waiting = list(waiting_letters(options, settings))
        if not waiting:
            print("no dead letter of this selection waits", file=sys.stderr)
            return 0
        with open_registry(settings) as registry:
            job = None if options.take_over else living_job(registry, settings.job)
            if job is not None:
                return _report(waiting, ask(registry, job, waiting, why=options.why))
            replayed, published = _replay_alone(settings, registry, waiting, take_over=options.take_over)
    status = _report(waiting, replayed)
    print(f"{published} documents published", file=sys.stderr)
    return status


def _replay_alone(
    settings: "Settings", registry: "Registry", waiting: "Sequence[DeadLetter]", *, take_over: bool
) -> tuple[list[ReplayReport], int]:
    """Replays the letters in a run of its own. Returns how many documents it published, too."""
    from processor.cli.operators.operator_run import open_operator_run
    from processor.cli.operators.stop_signals import StopSignals
    from processor.cli.printing.job_log import JobLog
    from processor.job.run.run_job import run_replays

    with StopSignals(JobLog()).handled() as signals:
        job = open_operator_run(settings, registry, signals, take_over=take_over)
        replayed = list(run_replays(job, waiting))
    return replayed, job.driver.tally[Count.CORRECTIONS]


def _report(waiting: "Sequence[DeadLetter]", replayed: Sequence[ReplayReport]) -> int:
    """Prints the refused letters and the account. Returns the exit status: 1 where a letter was refused for a new reason, or not
    replayed."""
    before = {
        (record_position(letter.rejected.record), why)
        for letter in waiting
        for why in (letter.rejected.reason, letter.refused_again)
    }
    failed = 0
    for replay in (one for one in replayed if one.outcome == "refused"):
        position = record_position(replay.record)
        new = before.isdisjoint({(position, replay.reason), (position, replay.plain or replay.reason)})
        failed += new
        what = "refused for a new reason" if new else "still waits"
        print(visible_line(f"{what}: {position}: {replay.reason}"), file=sys.stderr)
    outcomes = Counter(replay.outcome for replay in replayed)
    account = " + ".join(f"{outcomes[o]} {o}" for o in ("applied", "superseded", "ignored", "refused"))
    print(f"{len(replayed)} of {len(waiting)} dead letters replayed = {account}")
    return 1 if failed or len(replayed) < len(waiting) else 0
