"""A role before a DynamoDB API: refuses, as AWS does, each request that its policy does not allow."""

import json
from typing import Any

from tests.faulty.proxy import Answer, Relay, Request
from tests.recorder.calls import LIST, dynamodb_actions


class Role:
    """A layer of the proxy. `name`: an entry of the list of actions. `used`: the actions that requests needed so far; an action
    that only one partition allows has its name."""

    def __init__(self, name: str) -> None:
        self._list: dict[str, Any] = json.loads(LIST.read_text())[name]
        self.used: set[str] = set()

    @property
    def allowed(self) -> set[str]:
        """All actions of the policy."""
        partitions = self._list["partitions"].items()
        of_partitions = {f"{action} {name}" for name, actions in partitions for action in actions}
        return {*self._list["table"], *(f"{action} index" for action in self._list["index"]), *of_partitions}

    def __call__(self, request: Request, relay: Relay) -> Answer:
        needed = dynamodb_actions(request.operation, request.body)
        partition = request.body.get("Key", {}).get("PK", {}).get("S")
        used = {action if action in self.allowed else f"{action} {partition}" for action in needed}
        self.used |= used
        if used <= self.allowed:
            return relay(request)
        text = f"not authorized to perform: dynamodb:{request.operation}"
        return Answer(status=400, body={"__type": "com.amazon.coral.service#AccessDeniedException", "message": text})
