"""The embedded parts: a real Kafka broker, a Postgres server and a DynamoDB API on this machine, without Docker."""
