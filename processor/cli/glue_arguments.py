"""The arguments of `statestore run` in a job of AWS Glue.

Glue gives the script each argument as `--KEY value`: those of the job, and its own. Its own are left out, by the list that AWS
documents. A flag without a value, such as `--take-over`, has the value "true" there. A key that neither Glue nor `run` knows is
an error: it is a misspelt setting.

`--endpoint` and `--debug` are Glue's own too, so the setting `endpoint` comes from the settings file.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from processor.cli.operators import run_command

OF_GLUE = (
    *("*[A-Z]*", "additional-*", "auto-scale-*", "class", "conf", "continuation-*", "continuous-*", "customer-*"),
    *("datalake-*", "debug", "disable-*", "enable-*", "encryption-*", "endpoint", "executor-cores", "extra-*", "job-*"),
    *("mode", "python-*", "spark-event-*", "use-postgres-driver", "user-jars-first", "write-shuffle-*"),
)
"""Patterns of Glue's own keys: "Using job parameters in AWS Glue jobs", and JOB_NAME, JOB_RUN_ID, TempDir and the like."""


def run_arguments(given: Sequence[str]) -> list[str]:
    """The arguments of `run` among those that Glue gives a script. Raises SystemExit, with one line, for an unknown key."""
    actions = _actions_of_run()
    arguments: list[str] = []
    for key, value in _pairs(given):
        action = actions.get(f"--{key}")
        if any(fnmatchcase(key, pattern) for pattern in OF_GLUE):
            continue
        if action is None:
            raise SystemExit(f"statestore run: there is no setting --{key}; `statestore run --help-all` lists them")
        if action.nargs != 0:
            arguments += [f"--{key}", value]
        elif value != "false":
            arguments.append(f"--{key}")
    return arguments


def _actions_of_run() -> Mapping[str, argparse.Action]:
    """The flags of `run`."""
    verbs = argparse.ArgumentParser().add_subparsers()
    run_command.add_parser(verbs)
    return verbs.choices["run"]._option_string_actions


def _pairs(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The keys and their values; the value of a key without one is empty."""
    for word, after in zip(given, [*given[1:], "--"], strict=True):
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            yield key, value if equals or after.startswith("--") else after
