"""The faces of statestore: one module a verb, or a few that belong together."""
