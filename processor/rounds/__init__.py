"""One round of the path, its parts, and the driver of rounds. Pure: knows no Spark and no client."""
