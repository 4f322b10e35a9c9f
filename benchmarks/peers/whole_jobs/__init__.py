"""Whole jobs of statestore and of Flink SQL, from Kafka topics to Kafka topics. docs/benchmarks.md has the table."""
