"""A role before a DynamoDB API: refuses, as AWS does, each request that its policy does not allow."""

import json
from typing import Any

from tests.faulty.proxy import Answer, Relay, Request
from tests.recorder.calls import LIST, dynamodb_actions


class Role:
    """A layer of the proxy. `names`: entries of the list of actions, which the role has together. `allowed`: all their actions;
    `used`: those that requests needed so far. An action that only one partition allows has its name."""

    def __init__(self, *names: str) -> None:
        entries = json.loads(LIST.read_text())
        self.allowed: set[str] = set().union(*(_actions(entries[name]) for name in names))
        self.used: set[str] = set()

    def __call__(self, request: Request, relay: Relay) -> Answer:
        needed = dynamodb_actions(request.operation, request.body)
        partition = request.body.get("Key", {}).get("PK", {}).get("S")
        used = {action if action in self.allowed else f"{action} {partition}" for action in needed}
        self.used |= used
        if used <= self.allowed:
            return relay(request)
        text = f"not authorized to perform: dynamodb:{request.operation}"
        return Answer(status=400, body={"__type": "com.amazon.coral.service#AccessDeniedException", "message": text})


def _actions(entry: dict[str, Any]) -> set[str]:
    of_partitions = {f"{action} {name}" for name, actions in entry["partitions"].items() for action in actions}
    return {*entry["table"], *(f"{action} index" for action in entry["index"]), *of_partitions}
