"""The command `statestore`: its verbs and their flags. A verb imports its clients when it runs, so that `try` starts at once.

Exit status: 0 done, 1 a wrong input or a failed check, 2 wrong usage, 3 an error that statestore does not expect.
"""

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from processor.cli.authors import (
    explain_command,
    get_command,
    plan_command,
    schema_command,
    statistics_command,
    test_command,
    try_command,
)
from processor.cli.edits import (
    add_slots_command,
    apply_command,
    history_command,
    operator_command,
    rebuild_registry_command,
    roles_command,
    slots_command,
    undo_command,
)
from processor.cli.machine import completion_command, demo_command, local_command
from processor.cli.operators import (
    backfill_command,
    copy_command,
    doctor_command,
    erase_command,
    land_command,
    rejects_command,
    run_command,
    status_command,
    verify_command,
)
from processor.cli.printing.visible_text import visible
from processor.errors import StatestoreError
from processor.nearest_name import nearest
from registry.errors import RegistryError
from statestore.errors import StoreError

VERBS = (
    demo_command,
    try_command,
    test_command,
    plan_command,
    apply_command,
    slots_command,
    operator_command,
    add_slots_command,
    history_command,
    undo_command,
    statistics_command,
    doctor_command,
    run_command,
    status_command,
    backfill_command,
    get_command,
    explain_command,
    schema_command,
    verify_command,
    land_command,
    rejects_command,
    erase_command,
    roles_command,
    rebuild_registry_command,
    copy_command,
    local_command,
    completion_command,
)


GROUPS = {
    "verbs of an author of products": ("try", "test", "plan", "apply", "explain", "schema", "get", "statistics"),
    "verbs of this machine": ("demo", "local", "completion"),
}
"""The groups of verbs in the help. All other verbs are those of an operator."""
OF_OPERATORS = "verbs of an operator"


class VerbParser(argparse.ArgumentParser):
    """The parser of the command, or of a verb: it takes whole flags only, and `--debug`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, allow_abbrev=False)
        help = "print the traceback of an error too"
        self.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=help)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names the nearest verb, or the nearest other choice, in place of a wrong one."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            raise argparse.ArgumentError(action, f"there is no {value!r}; {_cure(str(value), choices)}")
        super()._check_value(action, value)

    def flags(self) -> list[str]:
        """The flags that the verb takes."""
        return [flag for action in self._actions for flag in action.option_strings]


def _cure(word: str, choices: list[str]) -> str:
    near = nearest(word, choices)
    return f"did you mean {near!r}?" if near else f"choose from {', '.join(choices)}"


class CommandParser(VerbParser):
    """The parser of the command. Its help lists the verbs in groups."""

    def add_verbs(self) -> None:
        """Adds all verbs."""
        self._verbs = self.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=VerbParser)
        for module in VERBS:
            module.add_parser(self._verbs)
        self._lines = {action.dest: action for action in self._verbs._get_subactions()}
        for name, parser in self._verbs.choices.items():
            parser.description = self._lines[name].help

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """As argparse does, and names the flag that is nearest to an unknown one."""
        options: argparse.Namespace
        options, unknown = self.parse_known_args(args, namespace)
        for word in unknown:
            flag = word.partition("=")[0]
            near = nearest(flag, self._verbs.choices[options.verb].flags()) if flag.startswith("-") else None
            if near:
                self.exit(2, f"{self.prog} {options.verb}: there is no flag {flag}; did you mean {near}?\n")
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        grouped = {name for names in GROUPS.values() for name in names}
        authors, machine = GROUPS.items()
        operators = (OF_OPERATORS, [name for name in self._lines if name not in grouped])
        for title, names in (authors, operators, machine):
            formatter.start_section(title)
            formatter.add_arguments(self._lines[name] for name in names)
            formatter.end_section()
        formatter.start_section("flags")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text("`statestore VERB --help` lists what the verb takes.")
        return formatter.format_help()


class PrintVersion(argparse.Action):
    """Prints the version of the installed package."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        try:
            print(f"statestore {version('statestore')}")
        except PackageNotFoundError:
            print("statestore, not installed: a checkout")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a verb and returns the exit status. Prints an error as one message; with `--debug` its traceback too."""
    parser = CommandParser(prog="statestore", description="Documents from change streams, joined over one table.")
    parser.add_argument("--version", action=PrintVersion, nargs=0, help="print the version, and exit")
    parser.add_verbs()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print(f"statestore {options.verb}: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except Exception as error:
        if "debug" in options:
            traceback.print_exc()
        message, status = _read_error(error)
        print(f"statestore {options.verb}: {visible(message)}", file=sys.stderr)
        return status


def _read_error(error: Exception) -> tuple[str, int]:
    """The message of an error, and the exit status."""
    match error:
        case StatestoreError() | RegistryError() | StoreError():
            return str(error), 1
        case OSError():  # a file, a directory or an address that an option names
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror or error}", 1
    first = (str(error).splitlines() or ["no message"])[0]
    return f"unexpected {type(error).__name__}: {first} (--debug shows where; please report it)", 3
