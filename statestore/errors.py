"""What can go wrong at the table."""


class StoreError(Exception):
    """Any failure of a store; the message names the table, the request and the cure."""


class Transient(StoreError):
    """May be tried again: throttled, timed out, unreachable."""


class Terminal(StoreError):
    """Trying again does not help: no such table, no permission, a malformed request."""
