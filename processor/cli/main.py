"""The command `statestore`: verbs and their flags. Each verb imports what it needs when it runs, so that `try` starts at once.

Exit status: 0 done, 1 a wrong input or a failed check, 2 wrong usage.
"""

import argparse
import sys
from collections.abc import Sequence

from processor.cli import (
    demo,
    explain,
    get,
    job,
    local,
    plan,
    registry,
    rejects,
    schema,
    statistics,
    test,
    trial,
    verify,
)
from processor.errors import StatestoreError
from registry.errors import RegistryError
from statestore.errors import StoreError

VERBS = (demo, trial, test, plan, registry, statistics, job, get, explain, schema, verify, rejects, local)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a verb; expected errors are printed, without a traceback."""
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
