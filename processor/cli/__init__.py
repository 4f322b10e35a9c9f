"""The command: the verbs by who gives them, and one room for all that prints."""
