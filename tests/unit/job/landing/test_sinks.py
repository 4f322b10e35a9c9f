"""The kinds of sink: an address leads to its kind, and the pages name each."""

from pathlib import Path

import pytest

from processor.environment.settings.secrets import is_reference
from processor.job.landing.sinks import POSTGRES, SINKS, SinkKind, sink_of

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("kind", SINKS, ids=lambda kind: kind.name)
def test_an_address_leads_to_its_kind(kind: SinkKind) -> None:
    assert sink_of(kind.form) is kind
    assert all(sink_of(f"{scheme}://host") is kind for scheme in kind.schemes)


def test_a_scheme_is_of_one_kind_and_begins_no_reference() -> None:
    """`land --to env:NAME` reads the address from a variable."""
    schemes = [scheme for kind in SINKS for scheme in kind.schemes]
    assert sorted({*schemes}) == sorted(schemes)
    assert [scheme for scheme in schemes if is_reference(f"{scheme}://host")] == []


@pytest.mark.parametrize("address", ["mysql://host/db", "host:5432", "https", "https://", ""])
def test_an_address_of_no_kind_leads_to_the_first_which_refuses_it(address: str) -> None:
    assert sink_of(address) is SINKS[0] is POSTGRES


@pytest.mark.parametrize("kind", SINKS, ids=lambda kind: kind.name)
def test_the_pages_name_each_kind(kind: SinkKind) -> None:
    for page in ("operate.md", "verbs.md"):
        assert kind.name in (ROOT / "docs" / page).read_text(encoding="utf-8")
