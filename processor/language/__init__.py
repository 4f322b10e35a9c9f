"""What authors write, and what it means: products and their expressions, and the reading of definitions. Pure.

It imports the values and what is below them. No client is here: only `definitions/sql_parser.py` imports sqlglot.
"""
