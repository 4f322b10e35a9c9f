"""The slots board."""

import json
from dataclasses import replace

from processor.cli.apply_command import board_text
from registry.model import AssignmentState, Snapshot
from registry.slot_board import board_json

BOARD = """\
entity        key                            GSI_1                       GSI_2
------------  -----------------------------  --------------------------  --------------------
payment_info  id                             user_id
                                             down from user
pull_request  repo#repo_owner#index          author
                                             down from user
repo          owner#name
              down from star
star          username#repo_name#repo_owner  username                    repo_owner#repo_name
                                             down from user              up from repo
user          email                          username                    id
                                             up from pull_request, star  up from payment_info"""


def test_the_board_shows_what_each_slot_holds_and_serves(applied: Snapshot) -> None:
    assert board_text(applied) == BOARD


def test_an_empty_registry_has_a_board_of_no_rows(empty: Snapshot) -> None:
    assert board_text(empty) == "entity  key\n------  ---"


def test_a_slot_that_does_not_serve_shows_its_state_and_an_unused_slot_shows_no_join(applied: Snapshot) -> None:
    retiring = replace(applied.assignments_of("payment_info")[0], state=AssignmentState.RETIRING)
    alone = replace(applied, entities=applied.entities[:1], assignments=(retiring,), joins=())
    assert board_text(alone).splitlines()[2:] == ["payment_info  id   user_id", "                   (retiring)"]


def test_the_board_as_json_has_the_same_content(applied: Snapshot) -> None:
    found = json.loads(json.dumps(board_json(applied)))
    assert (found["version"], found["slots"]) == (1, 20)
    assert found["entities"][2:4] == [
        {"entity": "repo", "key": ["owner", "name"], "key_serves": ["down from star"], "edges": [], "assignments": []},
        {
            "entity": "star",
            "key": ["username", "repo_name", "repo_owner"],
            "key_serves": [],
            "edges": [],
            "assignments": [
                {"slot": 1, "columns": ["username"], "state": "serving", "serves": ["down from user"]},
                {"slot": 2, "columns": ["repo_owner", "repo_name"], "state": "serving", "serves": ["up from repo"]},
            ],
        },
    ]
