"""How errors name a request: by its key and value, or without the values of rows."""

from dataclasses import dataclass

from statestore.keys import Key
from statestore.limits import key_text
from statestore.store import Query


@dataclass(frozen=True, slots=True)
class RequestNames:
    """Names requests. `show_keys`: whether by the keys of rows, or only by their partitions."""

    show_keys: bool

    def row(self, key: Key) -> str:
        """The row with this key."""
        return key_text(key) if self.show_keys else _without_values(key.pk)

    def reading(self, source: Query | str) -> str:
        """A read of an index, or of a partition."""
        if isinstance(source, str):
            return f"reading partition {source if self.show_keys else _without_values(source)}"
        return f"querying {source.slot}" + (f" for {source.value!r}" if self.show_keys else "")


def _without_values(pk: str) -> str:
    """A partition key. The partition of edges ends with a value of the rows."""
    return pk.partition("=")[0]
