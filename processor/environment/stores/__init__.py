"""The kinds of store: everything that depends on where the table is. A new store has its package, and its kind here."""
