"""`statestore history`: who changed which entry of the registry, when and why; the newest version first."""

import argparse
import json
from dataclasses import asdict

from processor.cli.arguments import positive
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.environment.settings.resolve import open_registry
from processor.text import visible
from processor.tools.inspect.history_lines import history_lines

LIMIT = 20


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("history", help="show who changed which entry of the registry, when and why")
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=LIMIT, help=f"the last N changed entries (default {LIMIT})"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each entry, with all its values")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        entries = registry.history(options.limit)
    if options.json:
        for entry in entries:
            print(json.dumps(asdict(entry) | {"at": entry.at.isoformat()}))
    else:
        print(visible("\n".join(history_lines(entries))))
    return 0
