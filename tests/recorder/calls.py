"""Records which actions of AWS the product asks for, in a whole run of the tests, and compares them with the policies.

The doubles of AWS write the calls down: moto in its own process, and DynamoDB Local behind a tap. Each process has a file of its
own, so no lock costs time. A call is the product's if its header `User-Agent` has the word `statestore`. A client that a test
makes itself does not send this word, so calls of tests do not count.
"""

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

FOLDER = "RECORDED_AWS_CALLS"
"""The variable with the folder of the files. Processes that a test starts inherit it."""
LIST = Path(__file__).parents[2] / "infra" / "modules" / "access" / "dynamodb_actions.json"
OTHERS = frozenset({"secretsmanager:GetSecretValue"})
"""What main.tf of the same module also allows; tests/infra compares."""
FILES = {"DELETE": "s3:DeleteObject", "GET": "s3:ListBucket", "PUT": "s3:PutObject"}
"""The requests to S3 of a load, which the same file allows, by their methods."""
_PRODUCT = re.compile(r"\bstatestore\b")
_SERVICE = re.compile(r"Credential=[^/]*/[^/]*/[^/]*/([^/]*)/aws4_request")


def record(headers: Mapping[str, str], body: bytes) -> None:
    """Writes down a call of the product. headers: their names in lower case."""
    folder = os.environ.get(FOLDER)
    if folder and _PRODUCT.search(headers.get("user-agent", "")):
        for action in actions(headers, body):
            _write(os.getpid(), folder, action)


def actions(headers: Mapping[str, str], body: bytes) -> set[str]:
    """The actions of IAM that a call needs, such as `dynamodb:Query index`."""
    service = _SERVICE.search(headers.get("authorization", ""))
    operation = headers.get("x-amz-target", "?").rpartition(".")[2]
    if service is not None and service[1] == "s3":
        return {FILES.get(headers.get(":method", ""), "s3:?")}
    if service is None or service[1] != "dynamodb":
        return {f"{service[1] if service else '?'}:{operation}"}
    return {f"dynamodb:{action}" for action in dynamodb_actions(operation, json.loads(body))}


def dynamodb_actions(operation: str, body: Mapping[str, Any]) -> set[str]:
    """The actions that a request to DynamoDB needs. An index is a resource of its own."""
    return {f"{operation} index" if "IndexName" in body else operation}


def allowed() -> set[str]:
    """The actions that any of the policies allows."""
    actions = {action for role in json.loads(LIST.read_text()).values() for action in _of_role(role)}
    return {f"dynamodb:{action}" for action in actions} | OTHERS | {*FILES.values()}


def recorded(folder: Path) -> set[str]:
    """The actions that all processes wrote down."""
    return {line for file in folder.iterdir() for line in file.read_text().splitlines()}


def differences(called: set[str], allows: set[str], *, unused: bool) -> list[str]:
    """Sentences about each difference; without `unused` not about an action that no test called."""
    found = [f"the code asks for {action}, which no policy allows" for action in sorted(called - allows)]
    if unused:
        found += [f"a policy allows {action}, which no test asks for" for action in sorted(allows - called)]
    return found


def _of_role(role: Mapping[str, Any]) -> set[str]:
    on_index = {f"{action} index" for action in role["index"]}
    return {*role["table"], *on_index, *chain.from_iterable(role["partitions"].values())}


@cache
def _write(process: int, folder: str, action: str) -> None:
    """Writes an action down once. `process`: a fork writes into a file of its own."""
    with _file(process, folder) as file:
        file.write(f"{action}\n")


def _file(process: int, folder: str) -> TextIO:
    return (Path(folder) / str(process)).open("a", encoding="utf-8")
