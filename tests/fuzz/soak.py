"""Searches for inputs that end in a traceback: `python -m tests.fuzz.soak --seeds 20000`.

`--target NAME` mutates the inputs of one kind only. `--from N` begins with another seed. `--target NAME --seed N` runs one seed
and shows the whole error. Exits with 1 if a seed was wrong, and prints it.
"""

import argparse
import sys
import time
import warnings
from random import Random

from tests.fuzz.finding import Finding
from tests.fuzz.targets import TARGETS

MOST_PRINTED = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="seeds of each target")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--target", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    warnings.simplefilter("error")
    if options.seed is not None:
        TARGETS[options.target](Random(options.seed))
        return 0
    found = 0
    for name in [options.target] if options.target else TARGETS:
        began = time.monotonic()
        wrong = search(name, range(options.first, options.first + options.seeds))
        for seed, finding in list(wrong.items())[:MOST_PRINTED]:
            print(f"{name} {seed}: {str(finding)[:400]}")
        print(f"{name}: {options.seeds:,} seeds, {len(wrong)} wrong, {time.monotonic() - began:.0f} s", flush=True)
        found += len(wrong)
    return 1 if found else 0


def search(name: str, seeds: range) -> dict[int, Finding]:
    """The seeds that were wrong, with their findings."""
    wrong = {}
    for seed in seeds:
        try:
            TARGETS[name](Random(seed))
        except Finding as finding:
            wrong[seed] = finding
    return wrong


if __name__ == "__main__":
    sys.exit(main())
