"""The verbs of this machine: the demo, the embedded parts, completion."""
