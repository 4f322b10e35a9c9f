"""The command `statestore`: its verbs and their flags. A verb imports its clients when it runs, so that `try` starts at once.

Exit status: 0 done, 1 a wrong input or a failed check, 2 wrong usage.
"""

import argparse
import sys
from collections.abc import Sequence

from processor.cli import (
    apply_command,
    backfill_command,
    demo_command,
    explain_command,
    get_command,
    history_command,
    local_command,
    operator_command,
    plan_command,
    rejects_command,
    run_command,
    schema_command,
    slots_command,
    statistics_command,
    status_command,
    test_command,
    try_command,
    undo_command,
    verify_command,
)
from processor.errors import StatestoreError
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
    history_command,
    undo_command,
    statistics_command,
    run_command,
    status_command,
    backfill_command,
    get_command,
    explain_command,
    schema_command,
    verify_command,
    rejects_command,
    local_command,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a verb and returns the exit status. Prints an expected error as one message, without a traceback."""
    parser = argparse.ArgumentParser(
        prog="statestore", description="Documents from change streams, joined over one DynamoDB table."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for module in VERBS:
        module.add_parser(verbs)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (StatestoreError, RegistryError, StoreError) as error:
        print(f"statestore {options.verb}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"statestore {options.verb}: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except OSError as error:  # a file, a directory or an address that an option names
        where = f"{error.filename}: " if error.filename else ""
        print(f"statestore {options.verb}: {where}{error.strerror or error}", file=sys.stderr)
        return 1
