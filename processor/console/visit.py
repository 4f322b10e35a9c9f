"""A request to the console, as a screen sees it, and the person who sends it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from processor.serve.problem import LookUpProblem
from registry.edits.edit import Signature

MOST_REASON = 500
"""Characters of a reason."""
LONGEST_KEY = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who sends a request. `name`: for the history of the registry; `role`: of the registry, None for that of the console's
    connection; `may_edit`: whether the database gives it the rights of an operator."""

    name: str
    role: str | None = None
    may_edit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request. `query`, `form`: its fields."""

    person: Person
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def asked(self, name: str) -> str:
        """A field of the form, else of the query; empty without it."""
        return self.written(name).strip()

    def written(self, name: str) -> str:
        """The same with the blanks at its ends, which a key may have."""
        return next(iter(self.form.get(name, ())), self.query.get(name, ""))

    def key(self, name: str) -> str:
        """A key, as the person wrote it. Raises LookUpProblem for one that is too long for a screen."""
        text = self.written(name)
        if len(text) > LONGEST_KEY:
            raise LookUpProblem(400, f"the key has more than {LONGEST_KEY:,} characters: use `statestore get` or `row`")
        return text

    def number(self, name: str) -> int:
        """A field that is a whole number. Raises LookUpProblem for another text."""
        text = self.asked(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise LookUpProblem(400, f"`{name}` must be a whole number, not {text[:40]!r}")
        return int(text)

    def signature(self) -> Signature:
        """Who makes an edit, and why. Raises LookUpProblem for a person who may not edit, or without a reason."""
        if not self.person.may_edit:
            raise LookUpProblem(
                403,
                "you may read here, and change nothing: your role lacks the rights of an operator (`statestore roles`): start "
                "the console with your name in --operators, or with a connection that has the role of an operator",
            )
        why = self.asked("why")
        if not why or len(why) > MOST_REASON:
            raise LookUpProblem(400, f"the history needs your reason: 1 to {MOST_REASON} characters")
        return Signature(self.person.name, why)
