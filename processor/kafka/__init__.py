"""The doorway to Kafka: the only room that imports the clients of confluent_kafka.

Spark reads the topics of entities by its own connector. This room sends messages (outbox.py), looks after topics (admin.py),
and reads topics for tools and for what the job published (reader.py).
"""
