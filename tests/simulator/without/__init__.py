"""Takes protections of the product away, one at a time, for tests: each switch is a context manager."""
