"""The demo's broken records: one for each way in which a record may break its contract. The job makes dead letters of them."""

from typing import Any

_EMAIL = "octocat@users.noreply.example"
_REPO = {"owner": "octocat", "name": "hello-world"}
_PULL = {"repo": "hello-world", "repo_owner": "octocat", "index": 7}
_CREATED_AT = "2015-01-01T00:00:00Z"


def _created(row: dict[str, Any]) -> dict[str, Any]:
    return {"before": None, "after": row, "source": {}, "transaction": None, "op": "c", "ts_ms": 1420070400000}


BROKEN_RECORDS: tuple[tuple[str, Any, Any], ...] = (
    # Topic, key, value. Broken JSON:
    ("user", {"email": _EMAIL}, '{"before":null,"after":{"email":"octocat@users.nor'),
    # A part of the key is missing, in the key and in the row:
    ("star", {"username": "octocat", "repo_name": "hello-world"}, {"username": "octocat", "created_at": _CREATED_AT}),
    # A part of the key is null:
    ("payment_info", {"id": None}, {"id": None, "user_id": 583231, "verified": True, "__deleted": "false"}),
    # A value of the wrong type, three times:
    ("repo", _REPO, _created({**_REPO, "description": "hi", "star_count": "many", "fork_count": 0})),
    (
        "user",
        {"email": _EMAIL},
        _created({"id": 583231, "email": _EMAIL, "username": "octocat", "registered_at": "once"}),
    ),
    ("payment_info", {"id": 1}, {"id": 1, "user_id": 583231, "verified": "maybe", "__deleted": "false"}),
    # Key and row disagree:
    ("pull_request", _PULL, _created({**_PULL, "index": 8, "author": "octocat", "title": "x", "status": "open"})),
)
