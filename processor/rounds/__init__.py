"""One round of the path, and its stages. Pure: knows no Spark and no client."""
