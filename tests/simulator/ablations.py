"""For every protection there is a history that ends wrong without it: found, shrunk, recorded, run by `make test`.

    python -m tests.simulator.ablations find [NAME ...] [--seeds 20000]   looks for such histories, shrinks and records them
    python -m tests.simulator.ablations table                             puts the table into docs/correctness.md

What was found stands in `ablations.json`: the seed, the world's boosts, the events kept, and how many seeds it took.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.simulator.protections import TABLE
from tests.simulator.shrink import shrink

RECORDED = Path(__file__).with_name("ablations.json")
PAGE = Path(__file__).parents[2] / "docs" / "correctness.md"
BEGIN, END = "<!-- ablations -->\n", "<!-- end of ablations -->"


def find(name: str, seeds: int) -> dict[str, Any] | None:
    """The first seed that is red without the protection and green with it, shrunk."""
    protection = TABLE[name]
    seed = next((n for n in range(seeds) if protection.missed(n, protection.boost) is not None), None)
    if seed is None:
        return None
    boost, keep = shrink(seed, protection.boost, lambda b, k: protection.missed(seed, b, k) is not None)
    return {"seed": seed, "boost": boost, "keep": keep, "verdict": protection.missed(seed, boost, keep)}


def recorded() -> dict[str, dict[str, Any]]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def table() -> str:
    """The ablations as docs/correctness.md shows them."""
    lines = ["| protection | against | seeds until red | smallest history |", "|---|---|---|---|"]
    known = recorded()
    for protection in TABLE.values():
        found = known[protection.name]
        cells = [f"{found['seed'] + 1:,}{' (boosted)' if protection.boost else ''}", f"{len(found['keep'])} events"]
        beside = f" (without *{protection.beside}* as well)" if protection.beside else ""
        lines.append(f"| {protection.name}{beside} | {protection.against} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def in_page(page: str) -> str:
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END, 1)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("find", "table"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=20_000)
    options = parser.parse_args()
    if options.verb == "table":
        PAGE.write_text(in_page(PAGE.read_text()))
        return 0
    known = recorded()
    for name in options.names or TABLE:
        found = find(name, options.seeds)
        said = f"red at {found['seed']}, {len(found['keep'])} events: {found['verdict']}" if found else "NOT NOTICED"
        print(f"{name:48} {said[:150]}", flush=True)
        known.pop(name, None)
        if found:
            known[name] = found
        text = ",\n".join(f" {json.dumps(n)}: {json.dumps(known[n])}" for n in TABLE if n in known)
        RECORDED.write_text("{\n" + text + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
