"""Runs Flink SQL in this process and its JVM, as a session that gets one job after another. It runs in PyFlink's environment.

    python flink_program.py < JOBS

Each line of the standard input is a job: the `settings` of its environment, the `tables` to create, and the `inserts` of its one
statement set. The end of the input, and the failure of a job, end all jobs.
"""

import json
import os
import sys
import traceback
from threading import Thread
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment


def run(job: dict[str, Any]) -> None:
    """Runs a job, which never ends by itself."""
    try:
        configuration = Configuration()
        for name, value in job["settings"].items():
            configuration.set_string(name, value)
        environment = TableEnvironment.create(
            EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
        )
        for statement in job["tables"]:
            environment.execute_sql(statement)
        statements = environment.create_statement_set()
        for statement in job["inserts"]:
            statements.add_insert_sql(statement)
        statements.execute().wait()
    except Exception:
        traceback.print_exc()
        os._exit(1)


def main() -> None:
    """Starts each job when it comes."""
    for line in sys.stdin:
        Thread(target=run, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
