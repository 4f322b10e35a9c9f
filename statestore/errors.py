"""What can go wrong at the table."""


class StoreError(Exception):
    """Any failure of a store. The message names the table and the request, and says what to do."""


class Transient(StoreError):
    """A later try may succeed: throttled, timed out, unreachable."""


class Throttled(Transient):
    """The store answers, and refuses work because there is too much. A later try succeeds, if less work comes, or capacity."""


class Terminal(StoreError):
    """A later try fails too: no such table, no permission, a malformed request."""


class NoTable(Terminal):
    """There is no such table, or it is not ready yet."""


class FencedWrite(Terminal):
    """A newer run took over the table: this run must stop."""


class NewerFormat(Terminal):
    """A newer release wrote the item."""
