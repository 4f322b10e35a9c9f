"""The gate of a product: when the document of a root goes out, once it has changed. Pure."""

from dataclasses import dataclass
from typing import Final

AT_MOST: Final = 60.0
"""The default of `Gate.at_most`, in seconds: most source transactions end within a few, and a consumer that sees nothing
new for a minute begins to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What must be true before a changed root goes out; durations in seconds of the job's clock, 0 for none. `whole`: each source
    transaction that touched the root is complete. `quiet`: the root has not changed for so long. `every`: its last message is at
    least so old. `at_most`: after so long it goes out, whatever the others say."""

    whole: bool = False
    quiet: float = 0.0
    every: float = 0.0
    at_most: float = AT_MOST


OPEN: Final = Gate()
"""The gate that holds nothing."""
