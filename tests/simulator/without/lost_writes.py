"""Switches that turn off how a job notices a table that went back to an earlier moment."""

import processor.engine.rounds.round_runner as round_runner
from processor.engine.protocol import ledger
from tests.simulator.without.switch import always, replacing

unconditional_end = replacing(
    (round_runner, "end_round", lambda make: lambda run, before: make(run, before)._replace(when=None))
)
"""A run records the end of a round whatever the table knows of the round before."""

ends_with_messages_only = replacing(
    (
        round_runner.RoundRunner,
        "_end_round",
        lambda end: lambda driver, lanes, tally: end(driver, lanes, {**tally, "applied": 0}),
    )
)
"""A round that wrote rows and published nothing has no end in the table."""

no_mark = replacing((ledger, "lost_round", always("")))
"""A start does not compare the table with the registry's mark."""
