"""What surrounds the process: settings, the kinds of store, the programs of the embedded parts, and the listeners of HTTP.

It imports `processor.errors`, `processor.text` and `statestore`, and never the wings above it. Only `embedded.py` may start a
program; a store's kind imports its client when somebody opens the store.
"""
