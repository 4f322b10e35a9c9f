"""`statestore completion`: prints the script that completes verbs, their flags and their actions in bash or zsh."""

import argparse
from collections.abc import Iterator
from functools import partial

SHELLS = ("bash", "zsh")
INSTALL = 'eval "$(statestore completion bash)"'


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("completion", help=f"print the completion of a shell: put `{INSTALL}` into ~/.bashrc")
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=partial(run, verbs))


def run(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", options: argparse.Namespace) -> int:
    if options.shell == "zsh":  # zsh runs the functions of bash
        print("autoload -U +X compinit && compinit && autoload -U +X bashcompinit && bashcompinit")
    print("\n".join(_script(verbs)))
    return 0


def _script(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> Iterator[str]:
    """The lines of the script. Where a verb takes a file, the shell completes the names of files."""
    yield "_statestore() {"
    yield '  local words word="${COMP_WORDS[COMP_CWORD]}"'
    yield "  case $COMP_CWORD in"
    yield f"    1) words='{' '.join(verbs.choices)} --help --version' ;;"
    yield '    *) case "${COMP_WORDS[1]}" in'
    for name, parser in verbs.choices.items():
        yield f"      {name}) words='{' '.join(_words(parser))}' ;;"
    yield "    esac ;;"
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _statestore statestore"


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """The flags of a verb, and its actions with their flags."""
    words: dict[str, None] = {}
    for action in parser._actions:
        words.update(dict.fromkeys(action.option_strings))
        for choice in action.choices or ():
            words[str(choice)] = None
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                words.update(dict.fromkeys(_words(below)))
    return list(words)
