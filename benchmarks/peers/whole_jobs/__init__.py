"""Whole jobs of statestore, Flink SQL and Kafka Streams, from Kafka topics to Kafka topics. docs/benchmarks.md has the table."""
