"""Lands the documents of a product in a database where people look them up: `statestore land`.

A landing reads the product's topic in a group of consumers, and writes batches to a target. The target keeps the documents and
the offset of the next message in one transaction. So a batch that comes again after a crash changes nothing.
"""
