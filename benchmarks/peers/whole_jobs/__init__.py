"""Whole jobs of statestore, Flink SQL and Kafka Streams, from Kafka to Kafka. benchmarks/results.md has the table."""
