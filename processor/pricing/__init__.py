"""The preview of an apply, and the cost of events after it. Pure."""
