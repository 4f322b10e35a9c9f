"""The table: keys, rows, requests, and the stores that answer them. This package knows no product, no Spark and no registry."""
