"""Products, their expressions, their documents, and their meaning as SQL. Pure."""
