"""The tokens of people, one a line: `NAME=TOKEN`. Pure."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from processor.errors import SettingError

LEAST_TOKEN: Final = 16
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class PersonTokens:
    """The names of people by the SHA-256 of their tokens."""

    names: Mapping[bytes, str]

    def name_of(self, token: str) -> str:
        """The person of a token; empty for nobody. Compares it with every token, each in constant time."""
        shown, found = _hash(token), ""
        for kept, name in self.names.items():
            if hmac.compare_digest(kept, shown):
                found = name
        return found


def read_tokens(text: str, place: str) -> PersonTokens:
    """The tokens in a text from this place. Raises SettingError, which names a line and no token."""
    names: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, token = (part.strip() for part in line.partition("="))
        if not name or len(token) < LEAST_TOKEN:
            raise SettingError(
                f"--tokens: line {number} of {place} is not NAME=TOKEN, with a random token of {LEAST_TOKEN} characters or more"
            )
        if _hash(token) in names:
            raise SettingError(
                f"--tokens: line {number} of {place} has the token of another line: give each person a token"
            )
        names[_hash(token)] = name
    if not names:
        raise SettingError(f"--tokens: {place} is empty: write a line NAME=TOKEN for each person")
    return PersonTokens(names)


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
