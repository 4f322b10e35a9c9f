"""A request to the console, as a screen sees it, and the person who sends it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from processor.serve.problem import LookUpProblem
from registry.edits.edit import Signature

MOST_REASON = 500
"""Characters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who sends a request. `name`: for the history of the registry, empty where nobody knows; `may_edit`: whether the console's
    connection has the rights of an operator."""

    name: str
    may_edit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request. `query`, `form`: its fields."""

    person: Person
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def asked(self, name: str) -> str:
        """A field of the form, else of the query; empty without it."""
        return next(iter(self.form.get(name, ())), self.query.get(name, "")).strip()

    def number(self, name: str) -> int:
        """A field that is a whole number. Raises LookUpProblem for another text."""
        text = self.asked(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise LookUpProblem(400, f"`{name}` must be a whole number, not {text[:40]!r}")
        return int(text)

    def signature(self) -> Signature:
        """Who makes an edit, and why. Raises LookUpProblem for a person who may not edit, without a name, or without a reason."""
        if not self.person.may_edit:
            raise LookUpProblem(
                403,
                "you may read here, and change nothing: the role of this console's connection lacks the rights of an operator "
                "(`statestore roles`); start a console with the role of an operator",
            )
        if not self.person.name:
            raise LookUpProblem(403, "the history needs your name: give it as the user, with the token as the password")
        why = self.asked("why")
        if not why or len(why) > MOST_REASON:
            raise LookUpProblem(400, f"the history needs your reason: 1 to {MOST_REASON} characters")
        return Signature(self.person.name, why)
