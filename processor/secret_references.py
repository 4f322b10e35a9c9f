"""Secrets by reference: a setting names the place of its secret, and the process that starts reads that place.

    env:NAME             the value of the variable
    file:/path           the text of the file, without its last line end
    secret:ARN           the text of the secret in AWS Secrets Manager
    secret:ARN#field     the field of this name, where the secret's text is a JSON object, as Aurora writes it

Promises: an error names the setting and the reference, never the value. Does not: read a place again while the process runs.
"""

import json
import os
from pathlib import Path

from processor.errors import SettingError

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


def resolve_reference(setting: str, text: str) -> str:
    """The text in the place that a reference names; any other text as it is. `setting`: its name, for errors. Raises
    SettingError."""
    if isinstance(text, Secret) or not is_reference(text):
        return text
    kind, _, place = text.partition(":")
    try:
        return Secret({"env": _variable, "file": _file, "secret": _stored}[kind](place))
    except SettingError as error:
        raise SettingError(f"{setting}: {error}") from None


def _variable(name: str) -> str:
    if name not in os.environ:
        raise SettingError(f"the variable {name} is not set")
    return os.environ[name]


def _file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingError(f"the file {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SettingError(f"the file {path} is not UTF-8 text") from None


def _stored(place: str) -> str:
    from processor.secrets_manager import read_secret

    arn, _, field = place.partition("#")
    text = read_secret(arn)
    if not field:
        return text
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise SettingError(f"the secret {arn} is no JSON object, so it has no field {field}")
    if not isinstance(members.get(field), str):
        raise SettingError(f"the secret {arn} has no field {field} with a text")
    return str(members[field])
