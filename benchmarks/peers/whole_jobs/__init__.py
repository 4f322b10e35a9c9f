"""Whole jobs of statestore and of Flink SQL, from Kafka topics to Kafka topics. benchmarks/results.md has the table."""
