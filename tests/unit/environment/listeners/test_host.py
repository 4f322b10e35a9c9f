"""Which Host names a server."""

import pytest

from processor.environment.listeners.host import LOCAL_NAMES, is_named, plain_name


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "LocalHost:8280", "localhost.", "localhost.:80", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8280",
     "[0:0:0:0:0:0:0:1]", "localhost:"],
)  # fmt: skip
def test_a_name_of_this_machine(host: str) -> None:
    assert is_named(host, LOCAL_NAMES)


@pytest.mark.parametrize(
    "host",
    ["", "[", "]", "[]", "[::1", "::1]", "[[::1]]", "evil.example", "127.0.0.1.evil.example", "localhost.evil",
     "evil@localhost",
     "localhost@evil", "localhost:8280@evil", "localhost:x", "localhost:123456", "localhost:80:80", "localhost/", "localhost#",
     " localhost",
     "localhost\n", "localhost,evil", "http://localhost", "0.0.0.0", "2130706433", "127.1", "localhost..", "localhost\\evil",
     "lo\u212aalhost",
     "[v1.x]", "[::1%25eth0]"],
)  # fmt: skip
def test_any_other_text_is_no_name_of_this_machine(host: str) -> None:
    assert not is_named(host, LOCAL_NAMES)


def test_names_of_others_count_in_their_one_form() -> None:
    names = {plain_name(name) for name in ("Console.Example.org.", "[2001:DB8::0005]", "10.0.0.5")}
    assert names == {"console.example.org", "2001:db8::5", "10.0.0.5"}
    for host in ("console.example.org", "CONSOLE.example.org.:443", "[2001:db8:0::5]:1", "10.0.0.5:8290"):
        assert is_named(host, names)
    assert not is_named("localhost", names)
