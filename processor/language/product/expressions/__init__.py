"""Expressions of products: their nodes, their functions, and their evaluation at a row. Pure."""
