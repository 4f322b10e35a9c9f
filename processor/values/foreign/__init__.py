"""Records that are no rows of the entity as they are: envelopes of other systems, and deletes that a member says. Pure."""
