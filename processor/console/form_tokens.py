"""Proves that a form comes from a page of this console: the page has a token, which no other site can know (CSRF)."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_bytes

from processor.console.visit import Visit
from processor.serve.problem import LookUpProblem

FIELD = "form_token"


@dataclass(frozen=True, slots=True)
class FormTokens:
    """The tokens of one process: one for each person."""

    _secret: bytes = field(default_factory=lambda: token_bytes(32))

    def token_for(self, name: str) -> str:
        """The token in the forms of this person."""
        return hmac.new(self._secret, name.encode(), "sha256").hexdigest()

    def check(self, visit: Visit, headers: Mapping[str, str]) -> None:
        """Raises LookUpProblem for a form of another site, or of a page from before this process began."""
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise LookUpProblem(403, "the form comes from another site, so nothing was changed")
        if not hmac.compare_digest(visit.asked(FIELD).encode(), self.token_for(visit.person.name).encode()):
            raise LookUpProblem(
                403, "the console began again after this page, so nothing was changed: open the page again"
            )
