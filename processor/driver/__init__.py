"""The driver: which work is due, and in which order. Knows no Spark and no client."""
