"""The embedded parts: a real Kafka broker, Postgres and DynamoDB API on this machine, without Docker."""
