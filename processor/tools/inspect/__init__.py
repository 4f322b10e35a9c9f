"""Inspects products and the state: access paths, prices, the rows of a document, published documents against the state."""
