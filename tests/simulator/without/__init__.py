"""Switches that turn protections of the product off, one at a time, for tests. Each switch is a context manager."""
