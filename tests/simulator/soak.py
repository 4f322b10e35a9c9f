"""Searches for histories that end wrong: `python -m tests.simulator.soak --seeds 200000`.

`--kind products` gives each seed a random product of its own, `--kind sets` a random set of products that operators edit.
`--kind topics` gives each seed a small world whose topics change; with `--kind "shared topic"` and `--kind "shared topics"` all
entities share one. `--kind mixed` adds gates, erasures and replays; `--kind "mixed edits"` adds edits of the registry, and
`--kind "drawn edits"` those over random products. `--kind every` and `--kind "every edits"` do so with all words of the language.
`--kind chosen` and `--kind "chosen replays"` give each seed one of the smallest worlds, whose turns choose their moments.
`--from N` starts at seed N. `--seed N [--keep 0,3,4] [--overrides "{...}"]` runs one seed and prints its trace.
The exit status is 1 when a seed ended wrong. The command prints up to three such seeds, shrunk.
"""

import argparse
import ast
import sys
import time
from typing import get_args

from tests.simulator.seeds import Kind, Summary, explain, overrides_of, run_many, simulation_of
from tests.simulator.simulate import simulate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--kind", choices=get_args(Kind), default="changes")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep", type=lambda text: [int(i) for i in text.split(",") if i])
    parser.add_argument("--overrides", type=ast.literal_eval)
    options = parser.parse_args()
    if options.seed is not None:
        return run_one(options)
    start = time.monotonic()

    def show_progress(so_far: Summary) -> None:
        share = so_far.seeds / options.seeds
        rate = so_far.seeds / (time.monotonic() - start)
        bar = "#" * int(30 * share)
        sys.stderr.write(f"\r[{bar:30}] {so_far.seeds:,} seeds, {rate:.0f}/s, {len(so_far.wrong)} wrong ")
        sys.stderr.flush()

    total = run_many(options.first, options.seeds, kind=options.kind, processes=options.processes, report=show_progress)
    sys.stderr.write("\n")
    print(report(total))
    for seed, problem in list(total.wrong.items())[:3]:
        print(explain(seed, problem, options.kind))
    return 1 if total.wrong else 0


def run_one(options: argparse.Namespace) -> int:
    kind_overrides = overrides_of(options.seed, options.kind)
    run = simulate(
        options.seed,
        overrides=kind_overrides if options.overrides is None else options.overrides,
        keep=options.keep,
        trace=True,
        simulation_class=simulation_of(options.kind),
    )
    print(*(run.world.trace or ()), sep="\n")
    print(f"seed {options.seed}: {run.problem or 'right'}; {dict(run.world.faults)}")
    return 1 if run.problem else 0


def report(total: Summary) -> str:
    """The summary as a table."""
    rows = [
        ("seeds", total.seeds),
        ("wrong", len(total.wrong)),
        ("requests", total.requests),
        ("corrections", total.corrections),
        ("longest staleness, virtual seconds", round(total.staleness)),
        *sorted(total.faults.items()),
    ]
    return "\n".join(f"{name:36} {value:>12,}" for name, value in rows)


if __name__ == "__main__":
    sys.exit(main())
