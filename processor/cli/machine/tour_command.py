"""`statestore tour`: shows what statestore does, on a small sample, in this process and in well under a second."""

import argparse
import shutil
import sys
from pathlib import Path

from processor.errors import StatestoreError


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("tour", help="show on a small sample, in memory, how five topics become one document")
    parser.add_argument("--copy", metavar="DIR", type=Path, help="copy the files of the sample into a new directory")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.tools.demo.tour import SAMPLE, tour_lines

    if options.copy is not None and options.copy.exists():
        raise StatestoreError(f"{options.copy} exists already: give --copy the name of a new directory")
    print("\n".join(tour_lines()))
    if options.copy is None:
        print("next: `statestore tour --copy DIR` copies the files, for you to change", file=sys.stderr)
        return 0
    shutil.copytree(SAMPLE, options.copy)
    file = options.copy / "topics.jsonl"
    print(f"next: `statestore try --definitions {options.copy} --from {file}`", file=sys.stderr)
    return 0
