"""The path of an event: from a record of a topic to published documents."""
