"""One round of the path, and its parts. Pure: knows no Spark and no client."""
