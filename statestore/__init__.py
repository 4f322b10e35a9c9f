"""The table: how keys, rows and requests are spelt, and the stores that keep them. Knows no product, no Spark, no registry."""
