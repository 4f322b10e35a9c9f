"""Prints a product as one PostgreSQL query, which defines the product's meaning. Pure."""
