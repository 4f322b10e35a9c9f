"""Secrets by reference: a setting names the place of its secret (`resolve.py` reads it there).

env:NAME             the value of the variable
file:/path           the text of the file, without its last line end
secret:ARN           the text of the secret in AWS Secrets Manager
secret:ARN#field     the field of this name, where the secret's text is a JSON object, as Aurora writes it
"""

REFERENCES = ("env:", "file:", "secret:")
EXAMPLES = (
    'write "env:NAME" for the value of a variable, "file:/path" for the text of a file, or "secret:ARN" or '
    '"secret:ARN#field" for AWS Secrets Manager'
)


class Secret(str):
    """The value of a reference, which its representation hides."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def is_reference(text: str) -> bool:
    """Whether a setting's text names the place of its value."""
    return text.startswith(REFERENCES)
