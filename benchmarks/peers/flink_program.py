"""The product user_profile as Flink SQL through PyFlink. It runs in PyFlink's own virtual environment, with parallelism 1.

    python flink_program.py HISTORY [--mini-batch 2000] [--checkpoints DIRECTORY]

Promises: one source reads the changes of all tables in the order of the events, as Debezium envelopes with the row before.
Flink prints each change of a document to standard output. With --checkpoints, RocksDB holds the state, and Flink makes a
checkpoint each second; else the state is in the memory of the JVM. Does not: order the lists, because an aggregate of Flink SQL
has no order, or cut the pull requests to 1,000.
"""

import argparse

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

SOURCE = """
CREATE TABLE history (
  `k` STRING, `table` STRING,
  `id` BIGINT, `email` STRING, `username` STRING, `owner` STRING, `name` STRING, `description` STRING,
  `repo` STRING, `repo_name` STRING, `repo_owner` STRING, `index` BIGINT, `author` STRING, `title` STRING, `status` STRING,
  `created_at` STRING, `user_id` BIGINT, `verified` BOOLEAN,
  PRIMARY KEY (`k`) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json')
"""
TARGET = """
CREATE TABLE documents (`email` STRING, `document` STRING, PRIMARY KEY (`email`) NOT ENFORCED) WITH ('connector' = 'print')
"""
PRODUCT = """
INSERT INTO documents
SELECT u.`email`, JSON_OBJECT(
  'email' VALUE u.`email`, 'username' VALUE u.`username`, 'starred_repos' VALUE s.`starred_repos`,
  'pull_requests' VALUE p.`pull_requests`, 'payment_verified' VALUE i.`verified`)
FROM (SELECT * FROM history WHERE `table` = 'user') AS u
LEFT JOIN (
  SELECT star.`username`, JSON_ARRAYAGG(JSON_OBJECT(
    'owner' VALUE star.`repo_owner`, 'name' VALUE star.`repo_name`, 'description' VALUE repo.`description`)) AS `starred_repos`
  FROM (SELECT *, 'repo#' || `repo_owner` || '#' || `repo_name` AS `repo_k` FROM history WHERE `table` = 'star') AS star
  LEFT JOIN (SELECT * FROM history WHERE `table` = 'repo') AS repo ON star.`repo_k` = repo.`k`
  GROUP BY star.`username`
) AS s ON u.`username` = s.`username`
LEFT JOIN (
  SELECT `author`, JSON_ARRAYAGG(JSON_OBJECT(
    'repo' VALUE `repo`, 'repo_owner' VALUE `repo_owner`, 'index' VALUE `index`, 'title' VALUE `title`,
    'status' VALUE `status`, 'created_at' VALUE `created_at`)) AS `pull_requests`
  FROM history WHERE `table` = 'pull_request'
  GROUP BY `author`
) AS p ON u.`username` = p.`author`
LEFT JOIN (
  SELECT * FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY `user_id` ORDER BY `id`) AS `place`
    FROM history WHERE `table` = 'payment_info')
  WHERE `place` = 1
) AS i ON u.`id` = i.`user_id`
ON CONFLICT DO DEDUPLICATE
"""
"""`k` is one key for all tables. The table of repositories joins on it, so that Flink knows that it finds one row at most."""


def main() -> None:
    options = argparse.ArgumentParser(description="Runs user_profile over a history as Flink SQL.")
    options.add_argument("history")
    options.add_argument("--mini-batch", type=int, help="rows that an operator collects before it works")
    options.add_argument("--checkpoints", help="directory for a checkpoint each second, and RocksDB as state")
    given = options.parse_args()
    settings = {
        "parallelism.default": "1",
        "rest.bind-port": "0",
        # else Flink reads the file five times, once for each table
        "table.optimizer.source.predicate-pushdown-enabled": "false",
    }
    if given.mini_batch:
        settings |= {
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.size": str(given.mini_batch),
            "table.exec.mini-batch.allow-latency": "5 s",
        }
    if given.checkpoints:
        settings |= {
            "state.backend.type": "rocksdb",
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": f"file://{given.checkpoints}",
        }
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    environment = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    )
    environment.execute_sql(SOURCE.format(path=given.history))
    environment.execute_sql(TARGET)
    environment.execute_sql(PRODUCT).wait()


if __name__ == "__main__":
    main()
