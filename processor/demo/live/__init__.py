"""The live demo: an application writes to Postgres, Debezium reads its log, and the job keeps the documents."""
