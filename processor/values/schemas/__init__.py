"""The schemas that records bring: by Kafka Connect, Debezium, Avro and JSON Schema. Reads no bytes."""
