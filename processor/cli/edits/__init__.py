"""The verbs that edit the registry, and that show it."""
