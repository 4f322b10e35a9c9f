"""The doorway to Kafka and to the schema registry: the only room that imports the clients of confluent_kafka.

Spark reads the topics of entities by its own connector. This room sends messages (outbox.py), looks after topics (admin.py),
reads topics for tools and for what the job published (reader.py), and knows Avro and Protobuf with their schemas.
"""
