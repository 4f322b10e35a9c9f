"""The indexes of a product's versions in OpenSearch, and the alias of the complete one, which readers use."""

from contextlib import closing

import pytest

from processor.job.landing.target import LandingError
from tests.integration.landing.conftest import PRODUCT, SearchScene

pytestmark = pytest.mark.rest


def test_readers_see_a_new_version_when_it_is_complete(search: SearchScene) -> None:
    for n in range(3):
        search.publish(n, {"n": n})
    search.publish(3, {"n": "no number"})
    search.land()
    search.version = 4
    search.publish(0, {"n": 0, "name": "zero"})
    first = search.land()
    assert not first.shown
    assert search.events[-1].text.endswith(
        "readers do not see it yet: 3 documents are of earlier versions of the product"
    )
    assert search.find({"match": {"name": "zero"}}) == []
    search.publish(1, {"n": 1, "name": "one"})
    search.publish(2, None)
    search.publish(3, {"n": 3})
    assert search.land().shown
    assert len(search.find({"match": {"name": "zero"}})) == 1
    assert search.table() == search.expected()
    assert list(search.ask("GET", f"/_alias/{PRODUCT}")) == [f"{PRODUCT}-v4"]


def test_the_landing_of_the_version_before_ends(search: SearchScene) -> None:
    search.publish(1, {"n": 1})
    search.land()
    with closing(search.target()) as before:
        opened = before.open(search.topic)
        search.version = 4
        search.publish(1, {"n": 1, "name": "one"})
        search.land()
        search.version = 3
        with pytest.raises(LandingError, match=f"{PRODUCT}-v3-write at .* is gone: readers have an index of a later"):
            search.landing(before, opened=opened).run()
        with pytest.raises(LandingError, match="closed to landings: the alias person has moved to a later version"):
            before.open(search.topic)


def test_an_older_version_never_takes_the_alias_back(search: SearchScene) -> None:
    search.publish(1, {"n": 1})
    search.version = 4
    search.publish(2, {"n": 1})
    search.publish(1, {"n": 2})
    search.land()
    search.version = 3
    with pytest.raises(LandingError, match=f"leads to {PRODUCT}-v4 already"):
        search.land()


def test_an_alias_that_no_landing_made_stays_as_it_is(search: SearchScene) -> None:
    search.ask("PUT", f"/{PRODUCT}-other", {"aliases": {PRODUCT: {}}})
    with pytest.raises(LandingError, match=f"the alias {PRODUCT} leads to {PRODUCT}-other, which no landing made"):
        search.land()
    assert list(search.ask("GET", f"/_alias/{PRODUCT}")) == [f"{PRODUCT}-other"]


def test_a_deleted_index_begins_again(search: SearchScene) -> None:
    search.publish(1, {"n": 1})
    search.land()
    with closing(search.target()) as target:
        opened = target.open(search.topic)
        search.ask("DELETE", f"/{PRODUCT}-v3")
        search.publish(2, {"n": 2})
        with pytest.raises(LandingError, match="or somebody deleted this one"):
            search.landing(target, opened=opened).run()
    search.land()
    assert search.table() == search.expected()
