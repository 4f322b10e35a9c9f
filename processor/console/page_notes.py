"""What the console says once to a person, on the page that follows an edit: kept in this process, so no address can forge it."""

from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import token_urlsafe
from threading import Lock

MOST_NOTES = 200


@dataclass(frozen=True, slots=True)
class PageNotes:
    """The last notes, each with the name of its person."""

    _notes: OrderedDict[str, tuple[str, str]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def keep(self, name: str, text: str) -> str:
        """Keeps a note for a person. Returns its number in an address."""
        number = token_urlsafe(9)
        with self._lock:
            self._notes[number] = (name, text)
            while len(self._notes) > MOST_NOTES:
                self._notes.popitem(last=False)
        return number

    def of(self, name: str, number: str) -> str:
        """The note of this number, if it is for this person; else empty."""
        with self._lock:
            whose, text = self._notes.get(number, ("", ""))
        return text if whose == name else ""
