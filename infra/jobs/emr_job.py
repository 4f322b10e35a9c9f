"""The entry point on EMR and EMR Serverless: `statestore run` with the arguments of the job."""

import sys

from processor.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
