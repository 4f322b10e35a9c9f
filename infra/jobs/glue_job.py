"""The entry point on Glue: `statestore run` with the arguments of the job, without those that are Glue's own."""

import sys

from processor.cli.main import main
from processor.cli.run import glue_arguments

if __name__ == "__main__" and (status := main(["run", *glue_arguments(sys.argv[1:])])):
    sys.exit(status)  # Glue counts a script that returns as done, and any exit status but 0 as failed
