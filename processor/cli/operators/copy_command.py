"""`statestore copy --from ADDRESS --to ADDRESS`: copies the state of a stopped job into another store."""

import argparse
import sys
from contextlib import closing
from dataclasses import replace

from processor.cli.options import REGISTRY, TABLE, add_settings, load_settings, reachable_settings
from processor.cli.printing.progress_bar import ProgressBar
from processor.environment.settings.resolve import address_forms, open_registry, settings_at
from processor.environment.settings.settings import PASSWORDS, owner_name
from statestore.copy_items import CopyStep


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("copy", help="copy the state of a stopped job into another store, and go on there")
    parser.add_argument(
        "--from", dest="source", metavar="ADDRESS", required=True, help=f"the table of the job: {address_forms()}"
    )
    parser.add_argument(
        "--to",
        dest="target",
        metavar="ADDRESS",
        required=True,
        help="an empty or a new table, in one of these forms too",
    )
    add_settings(parser, *REGISTRY, *TABLE, "job")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.tools.operate.copy_state import copy_state

    given = load_settings(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        passwords = {name: getattr(given, name) for name in PASSWORDS.values()}
        with_passwords = replace(settings, **passwords | {"registry_password": ""})
        source = settings_at("--from", options.source, with_passwords)
        target = settings_at("--to", options.target, with_passwords)
        with closing(ProgressBar(sys.stderr)) as bar:
            counts = copy_state(source, target, registry, owner=owner_name(), report=lambda step: _show(bar, step))
    print(f"{target.place} holds the state of {source.place}: {counts}")
    print(f"start the job with --store {target.store} --table {target.table}, and with its former checkpoint")
    return 0


def _show(bar: ProgressBar, step: CopyStep) -> None:
    note = f", waits for {step.late:,} entries of indexes" if step.late else ""
    bar.show(step.phase, step.done, step.total, about=step.about, note=note)
