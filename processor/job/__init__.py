"""The job around the engine: Kafka, metrics, landings, and the run itself with Spark, its lease and its topics.

It imports the engine and all below it, and never a tool or a verb.
"""
