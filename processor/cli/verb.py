"""A verb as one declaration above its function: its name, its group in the help, its flags and its settings. The help prints the
first paragraph of the function's docstring.

    @verb("roles", OPERATORS, settings=REGISTRY)
    def roles(options: argparse.Namespace) -> int: ...

`processor.cli.main.VERBS` names the module of each verb, which the command imports for this verb only. The flags that several
verbs share are declared here. This module imports no settings: an editor runs `check` at each save.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from processor.environment.stores.kind import LARGEST

AUTHORS, OPERATORS, MACHINE = "verbs of an author of products", "verbs of an operator", "verbs of this machine"
GROUPS = (AUTHORS, OPERATORS, MACHINE)
"""The groups of verbs, in the order of the help."""
_MOST_DIGITS = 20
"""Python reads no integers of thousands of digits."""

Run = Callable[[argparse.Namespace], int]
"""The function of a verb: it takes the flags, and returns the exit status."""


class ShowAll(argparse.Action):
    """Prints the help of a verb with what `--help` leaves out. `hidden`: the help texts of that."""

    def __init__(self, *, hidden: Mapping[argparse.Action, str], **given: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **given)
        self._hidden = hidden

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        for action, text in self._hidden.items():
            action.help = text
        parser.print_help()
        parser.exit()


class Flag(NamedTuple):
    """A flag or an argument. `given`: the arguments of argparse; `rare`: the help text of one that only `--help-all` shows."""

    name: str
    given: Mapping[str, Any]
    rare: str = ""
    former: str = ""
    """The name of the flag in earlier releases, which the verb takes for one release more."""

    def add_to(self, parser: argparse._ActionsContainer) -> argparse.Action:
        """Adds the flag to a parser, or to a group of one."""
        action = parser.add_argument(self.name, **self.given)
        if self.former:
            hidden = {"dest": action.dest, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
            parser.add_argument(self.former, **{**self.given, **hidden})
        return action


class FlagGroup(NamedTuple):
    """Flags of a section of the help with this title. Without a title: flags of which the user gives one at most, or just one."""

    flags: tuple[Flag, ...]
    title: str = ""
    required: bool = False


def flag(name: str, help: str = "", metavar: str = "", *, rare: bool = False, former: str = "", **given: Any) -> Flag:
    """A flag with a value (`metavar`), or without one. A name without dashes is an argument. `given`: as argparse takes it."""
    if metavar:
        given["metavar"] = metavar
    elif name.startswith("--") and not given.keys() & {"choices", "type", "default"}:
        given["action"] = "store_true"
    return Flag(name, {"help": argparse.SUPPRESS if rare else help, **given}, help if rare else "", former)


def one_of(*flags: Flag) -> FlagGroup:
    """Flags of which the user gives one at most."""
    return FlagGroup(flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A verb, or an action of one. `settings`: those that its help names; None for a verb that takes no settings."""

    name: str
    group: str
    help: str
    flags: tuple[Flag | FlagGroup, ...] = ()
    settings: tuple[str, ...] | None = None
    usage: str | None = None
    epilog: str | None = None
    run: Run | None = None
    """None for a verb that has actions."""
    actions: dict[str, "Verb"] = field(default_factory=dict)

    def add_to(self, verbs: "argparse._SubParsersAction[Any]", *former: str) -> None:
        """Adds the parser of the verb, and those of its actions. `former`: its names in earlier releases."""
        parser = verbs.add_parser(
            self.name,
            help=self.help,
            description=self.help,
            usage=f"%(prog)s [flags] {self.usage}" if self.usage else None,
            epilog=self.epilog,
            aliases=former,
        )
        rare: dict[argparse.Action, str] = {}
        for each in self.flags:
            place: argparse._ActionsContainer = parser
            if isinstance(each, FlagGroup):
                place = (
                    parser.add_argument_group(each.title)
                    if each.title
                    else parser.add_mutually_exclusive_group(required=each.required)
                )
            for one in each.flags if isinstance(each, FlagGroup) else (each,):
                action = one.add_to(place)
                rare |= {action: one.rare} if one.rare else {}
        if self.settings is not None:
            from processor.cli.options import add_settings

            rare |= add_settings(parser, *self.settings)
        parser.add_argument("--help-all", action=ShowAll, hidden=rare, help="explain all flags and settings, and exit")
        if self.actions:
            below = parser.add_subparsers(dest="action", required=True, metavar="|".join(self.actions))
            for action_verb in self.actions.values():
                action_verb.add_to(below)
        else:
            parser.set_defaults(run=self.run)

    def action(self, name: str, *flags: Flag | FlagGroup, **more: Any) -> Callable[[Run], Run]:
        """Declares an action of this verb, as `verb` does."""
        return verb(name, self.group, *flags, among=self.actions, **more)


KNOWN: dict[str, Verb] = {}
"""The verbs of the modules that are imported."""


def verb(
    name: str, group: str, *flags: Flag | FlagGroup, among: dict[str, Verb] = KNOWN, **more: Any
) -> Callable[[Run], Run]:
    """Declares the verb whose function follows. `more`: the other fields of `Verb`."""

    def declare(run: Run) -> Run:
        help = " ".join((run.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
        among[name] = Verb(name=name, group=group, help=help[:1].lower() + help[1:], flags=flags, run=run, **more)
        return run

    return declare


def verb_with_actions(name: str, group: str, help: str) -> Verb:
    """Declares a verb whose functions are those of its actions."""
    KNOWN[name] = made = Verb(name=name, group=group, help=help)
    return made


def positive(text: str) -> int:
    """A whole number, at least 1."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """A whole number, at least 0."""
    return _whole(text, 0)


def _whole(text: str, low: int) -> int:
    number = int(text) if len(text) < _MOST_DIGITS else LARGEST + 1
    if not low <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {LARGEST}")
    return number


def seconds(text: str) -> float:
    """A number of seconds, at least 0."""
    number = float(text)
    if not 0 <= number <= LARGEST:  # refuses nan too
        raise argparse.ArgumentTypeError(f"must be from 0 to {LARGEST}")
    return number


JSON = flag("--json", "print one JSON object")
WHY = flag("--why", "for the registry's history; the verb needs it", "REASON", default="")
PRODUCT, ENTITY = flag("product", metavar="PRODUCT"), flag("entity", metavar="ENTITY")
SEED = flag("--seed", "the same seed takes the same sample", "S", type=int)
PRETTY = flag("--pretty", "print a line for each member, as on a terminal")
TAKE_OVER = flag("--take-over", "take over from a job that still holds the lease")
LOG = (
    flag("--log", "the form of the lines: text (default), or JSON objects", choices=("text", "json"), default="text"),
    flag("--quiet", "print only warnings and errors"),
)


def definitions_in(help: str, **given: Any) -> FlagGroup:
    """The directory of definitions, as an argument or as `--definitions`, which the verb needs. `given`: as argparse takes it."""
    of_argument: dict[str, Any] = {"nargs": "?", **given, "default": argparse.SUPPRESS}
    argument = flag("definitions", help, "DIR", type=_path, **of_argument)
    of_name: dict[str, Any] = {"nargs": "+"} if given else {}
    named = flag("--definitions", "the same", "DIR", type=Path, **of_name)
    return FlagGroup((argument, named), required=True)


def _path(text: str) -> Any:
    """The path, or the mark for an argument that is left out, which argparse converts like one that a user gave."""
    return text if text is argparse.SUPPRESS else Path(text)


DEFINITIONS = definitions_in("directory with entities.yaml and products")
STORED_DEFINITIONS = flag(
    "--definitions",
    "directory with entities.yaml and products (default: the definitions of the registry)",
    "DIR",
    type=Path,
)
WITH_TESTS = definitions_in("directory with entities.yaml, products, and tests/")
DEAD_LETTER_FILE = flag(
    "--dead-letters", "file for dead letters (--to with .rejects.jsonl)", "FILE", former="--rejects"
)


def source_flags(help: str) -> tuple[Flag, ...]:
    """`--source URL` and `--password REF`, which `options.source_address` reads."""
    text = "password of --source: env:, file: or secret:"
    return flag("--source", help, "URL", default=""), flag("--password", text, "REF", default="")
