"""The command `statestore`: its verbs and their flags. A verb imports its clients when it runs, so that `try` starts at once.

Exit status: 0 done, 1 a wrong input or a failed check, 2 wrong usage, 3 an error that statestore does not expect.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from processor.cli.verb import GROUPS, KNOWN, OPERATORS
from processor.errors import StatestoreError
from processor.text import nearest, nearest_of, visible

VERBS = {
    "init": "init",
    "check": "check",
    "try": "trial",
    "test": "trial",
    "plan": "plan",
    "apply": "edit",
    "explain": "look",
    "schema": "look",
    "catalogue": "serve",
    "get": "look",
    "row": "look",
    "rows": "look",
    "keys": "look",
    "statistics": "plan",
    "epoch": "edit",
    "slots": "status",
    "remove": "edit",
    "republish": "edit",
    "pause": "edit",
    "resume": "edit",
    "retire": "edit",
    "move": "edit",
    "add-slots": "edit",
    "history": "edit",
    "undo": "edit",
    "doctor": "status",
    "run": "run",
    "load": "run",
    "status": "status",
    "backfill": "run",
    "verify": "verify",
    "land": "land",
    "serve": "serve",
    "mcp": "serve",
    "console": "serve",
    "dead-letters": "dead_letters",
    "erase": "erase",
    "roles": "edit",
    "rebuild-registry": "edit",
    "copy": "run",
    "tour": "machine",
    "demo": "machine",
    "local": "machine",
    "completion": "machine",
}
"""Each verb with its module, in the order of the help. The command imports the module of its verb only: an editor runs `check` at
each save. The module declares the verb (`processor.cli.verb`)."""
OF_AUTHORS_TOO = ("run", "status", "verify", "doctor", "dead-letters", "console")
"""The verbs of an operator that the first help lists. `--help-all` lists the others, which an author never needs."""
FORMER = {"rejects": "dead-letters"}
"""The names of verbs in earlier releases, which the command takes for one release more."""
MOST_CHOICES = 8
"""A message lists this many choices. Of more it names the nearest."""


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
            raise argparse.ArgumentError(action, f"there is no {value!r}; {_cure(str(value), choices, self.prog)}")
        super()._check_value(action, value)

    def flags(self) -> list[str]:
        """The flags that the verb takes."""
        return [flag for action in self._actions for flag in action.option_strings]


def _cure(word: str, choices: list[str], prog: str) -> str:
    if near := nearest(word, choices):
        return f"did you mean {near!r}?"
    if len(choices) <= MOST_CHOICES:
        return f"choose from {', '.join(choices)}"
    found = nearest_of(word, choices, 3)
    return (f"the nearest are {', '.join(found)}; " if found else "") + f"`{prog} --help` lists all"


class CommandParser(VerbParser):
    """The parser of the command. Its help lists the verbs in groups."""

    def add_verbs(self, names: Iterable[str] = tuple(VERBS)) -> None:
        """Adds these verbs."""
        self._verbs = self.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=VerbParser)
        for name in names:
            import_module(f"processor.cli.{VERBS[name]}")
            KNOWN[name].add_to(self._verbs, *(old for old, new in FORMER.items() if new == name))
        self.set_defaults(parsers=self._verbs.choices)

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

    def format_help(self, whole: bool = False) -> str:
        """The help, with the verbs that an author never needs where it is `whole`."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        every = {action.dest: action for action in self._verbs._get_subactions()}
        later = [] if whole else [n for n in every if KNOWN[n].group == OPERATORS and n not in OF_AUTHORS_TOO]
        lines = {name: action for name, action in every.items() if name not in later}
        for name, action in lines.items():
            action.metavar = name  # without the names of earlier releases
        for title in GROUPS:
            formatter.start_section(title)
            formatter.add_arguments(lines[name] for name in lines if KNOWN[name].group == title)
            formatter.end_section()
        formatter.start_section("flags")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text("`statestore VERB --help` lists what the verb takes.")
        if later:
            formatter.add_text(
                f"`statestore --help-all` lists {len(later)} more verbs of an operator: {', '.join(later)}."
            )
        return formatter.format_help()


class PrintVersion(argparse.Action):
    """Prints the version of the installed package."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"statestore {version('statestore')}")
        except PackageNotFoundError:
            print("statestore, not installed: a checkout")
        parser.exit()


class PrintWholeHelp(argparse.Action):
    """Prints the help with all verbs."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        assert isinstance(parser, CommandParser)
        print(parser.format_help(whole=True), end="")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a verb and returns the exit status. Prints an error as one message; with `--debug` its traceback too."""
    options = parsed(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print(f"statestore {options.verb}: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except Exception as error:
        if "debug" in options:
            import traceback  # of no use to a verb that works

            traceback.print_exc()
        message, status = _read_error(error)
        print(f"statestore {options.verb}: {visible(message)}", file=sys.stderr)
        return status


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The flags of a command line, with the function of the verb as `run`."""
    parser = CommandParser(prog="statestore", description="Documents from change streams, joined over one table.")
    parser.add_argument("--help-all", action=PrintWholeHelp, nargs=0, help="list all verbs, and exit")
    parser.add_argument("--version", action=PrintVersion, nargs=0, help="print the version, and exit")
    parser.add_verbs(_needed_verbs(arguments))
    return parser.parse_args(arguments)


def _needed_verbs(arguments: Sequence[str]) -> Iterable[str]:
    """The verb of the command line; all verbs where there is none, or where the verb itself lists them."""
    word = next((word for word in arguments if not word.startswith("-")), "")
    name = FORMER.get(word, word)
    return [name] if name in VERBS and name != "completion" else VERBS


def _read_error(error: Exception) -> tuple[str, int]:
    """The message of an error, and the exit status."""
    from registry.errors import RegistryError  # of no use to a verb that works
    from statestore.store import StoreError

    match error:
        case StatestoreError() | RegistryError() | StoreError():
            return str(error), 1
        case ModuleNotFoundError(name=("pyspark" | "py4j")):
            from processor.environment.programs.downloads import INSTALL_SPARK

            return f"this verb needs Spark, which is not installed: {INSTALL_SPARK}", 1
        case OSError():  # a file, a directory or an address that an option names
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror or error}", 1
    first = (str(error).splitlines() or ["no message"])[0]
    return f"unexpected {type(error).__name__}: {first} (--debug shows where; please report it)", 3
