"""Kafka records, the entities that they belong to, and the typed values of their rows. Pure."""
