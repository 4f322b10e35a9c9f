"""The name that a person may have meant."""

import pytest

from processor.text import nearest_topic


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("usr", {"user", "star"}, "user"),
        ("dev.public.user", {"prod.public.user", "dev.public.users"}, "prod.public.user"),
        ("user", {"github.public.user", "user_audit"}, "github.public.user"),
        ("githbu.public.star", {"github.public.star", "github.public.user"}, "github.public.star"),
        ("USER", {"user"}, "user"),
        ("user", {"user"}, None),
        ("payments", {"user", "star"}, None),
        ("user", set(), None),
    ],
)
def test_a_wrong_name_leads_to_the_nearest_that_exists(name: str, names: set[str], found: str | None) -> None:
    assert nearest_topic(name, names) == found
