"""Inspects products and the state: access paths, the rows of a document, published documents against the state."""
