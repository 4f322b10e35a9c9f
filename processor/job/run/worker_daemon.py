"""PySpark's daemon, which forks the Python workers. `worker` imports the modules of a task, and the packages of its clients.

Spark ends a worker that had no task for a minute. The next worker would import them again, a second of CPU. The clients
are not made here: they must not live through a fork.
"""

from pyspark import daemon

from processor.job.run.worker import keep_zip_directories

if __name__ == "__main__":
    keep_zip_directories()
    daemon.manager()  # type: ignore[no-untyped-call]
