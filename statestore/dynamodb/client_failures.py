"""Turns the errors of botocore, which both ways to send raise, into `Transient` or `Terminal`."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    NoRegionError,
    WaiterError,
)

from statestore import requests
from statestore.dynamodb.retries import BROKEN, error_code, is_throttle
from statestore.errors import NoTable, StoreError, Terminal, Throttled, Transient
from statestore.store import Item, Refused, TooLarge

_REFUSED = "ConditionalCheckFailedException"
_TOO_LARGE = "Item size"
_NO_TABLE = "ResourceNotFoundException"
_CURES = {
    _NO_TABLE: "create it, or set the table's name, region and endpoint",
    "AccessDeniedException": "allow this request on the table and its indexes in the role's policy",
    "UnrecognizedClientException": "give valid AWS credentials",
    "ExpiredTokenException": "renew the AWS credentials",
    "ValidationException": "the request does not fit the table: compare the table with its definition",
}


def failure(where: str, error: ClientError | BotoCoreError) -> StoreError:
    """The error that a caller of the store gets. `where`: the table, the request and its key."""
    match error:
        case ClientError() if is_throttle(error):
            return Throttled(f"{where}: throttled ({_message(error)}): wait, or write less at once")
        case ClientError() if error.response["ResponseMetadata"].get("HTTPStatusCode", 0) >= 500:
            return Transient(f"{where}: DynamoDB failed ({error_code(error)}: {_message(error)}): try again")
        case ClientError():
            cure = _CURES.get(error_code(error), "trying again does not help: see the cause")
            kind = NoTable if error_code(error) == _NO_TABLE else Terminal
            return kind(f"{where}: {error_code(error)}: {_message(error)}: {cure}")
        case NoCredentialsError():
            return Terminal(f"{where}: {error}: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role")
        case NoRegionError():
            return Terminal(f"{where}: {error}: set AWS_REGION")
        case WaiterError() if "Error" not in error.last_response:
            return Transient(f"{where}: {error}: it takes longer than 5 minutes; try again")
        case CredentialRetrievalError():
            return Transient(f"{where}: {error}: try again; is the endpoint right and reachable?")
    if isinstance(error, BROKEN):
        return Transient(f"{where}: {error}: try again; is the endpoint right and reachable?")
    return Terminal(f"{where}: {error}")


def is_refusal(error: ClientError) -> bool:
    """Whether the condition of a write or a delete did not hold."""
    return error_code(error) == _REFUSED


def unwritten(error: ClientError) -> Refused | TooLarge:
    """The outcome of a write that DynamoDB did not do for this reason. Raises any other error."""
    if is_refusal(error):
        return Refused(stored_item(error.response.get("Item")))
    if error_code(error) == "ValidationException" and _TOO_LARGE in _message(error):
        return TooLarge()
    raise error


def stored_item(wire: Mapping[str, Any] | None) -> Item | None:
    """The item in the answer to a write, None without an item. Raises Terminal, as `requests.item`."""
    return requests.item(wire) if wire else None


def _message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))
