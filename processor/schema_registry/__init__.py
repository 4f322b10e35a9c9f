"""The doorway to a Confluent-compatible schema registry, and to the formats of its schemas."""
