"""An item of a newer release is an error, and never taken for an item of this release."""

import pytest

from statestore.dynamodb import requests
from statestore.errors import Terminal
from statestore.items import FORMAT

KEY = {"PK": {"S": "LEDGER#profile"}, "SK": {"S": "7"}}


def test_an_item_of_a_newer_release_is_refused_with_its_key_and_the_cure() -> None:
    newer = {**KEY, "_f": {"N": f"{FORMAT + 1}"}, "seq": {"N": "1"}}
    message = (
        rf"LEDGER#profile / 7: the item has format {FORMAT + 1}, .* formats up to {FORMAT}: .* install that release"
    )
    with pytest.raises(Terminal, match=message):
        requests.item(newer)


@pytest.mark.parametrize("found", [{"N": f"{FORMAT}"}, {"N": "0"}, None])
def test_items_of_this_release_and_of_earlier_ones_are_read(found: dict[str, str] | None) -> None:
    wire = {**KEY, "_f": found} if found else KEY
    assert requests.item(wire)["SK"] == "7"
