"""All embedded parts together: for the time of a block, or until `local down`."""
