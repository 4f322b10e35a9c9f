"""The programs of the embedded parts: a real Kafka broker, a Postgres server and a DynamoDB API here, without Docker."""
