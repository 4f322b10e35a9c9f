"""Products compiled against the slot assignments of the registry: access paths and requests. Pure."""
