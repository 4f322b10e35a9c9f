"""The places of connections: whom a new client displaces, and when nobody is displaced. Where a server may listen, what it says
where it cannot, and that it takes clients without a free file descriptor.
"""

import errno
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from processor.environment import listeners
from processor.environment.listeners import (
    LOCAL_NAMES,
    Connection,
    ConnectionLimits,
    ConnectionTable,
    is_named,
    listen,
    plain_name,
)
from processor.errors import SettingError

NOW = [0.0]


class Crowd:
    """Clients at a table with few places. `ends`: what the clients hold."""

    def __init__(self, **limits: int | frozenset[str]) -> None:
        NOW[0] = 0.0
        given: dict[str, object] = {"most": 4, "most_of_one": 2, "seconds": 10.0, "shared": frozenset({"10.0.0.9"})}
        self.table = ConnectionTable(ConnectionLimits(**(given | limits), clock=lambda: NOW[0]))  # type: ignore[arg-type]
        self.ends: dict[tuple[str, int], socket.socket] = {}
        self.made: list[Connection] = []

    def comes(self, address: str, port: int) -> bool:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.ends[(address, port)] = theirs
        self.made.append(Connection(self.table, (address, port), ours.detach()))
        return self.table.take(self.made[-1])

    def left(self) -> set[tuple[str, int]]:
        """The clients whose connections the table did not end."""
        return {peer for peer, end in self.ends.items() if _is_open(end)}


def _is_open(end: socket.socket) -> bool:
    try:
        return end.recv(1) != b""
    except BlockingIOError:
        return True


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    crowd = Crowd()
    yield crowd
    for one in (*crowd.made, *crowd.ends.values()):
        one.close()


def test_an_address_loses_its_own_oldest_connection_and_others_lose_none(crowd: Crowd) -> None:
    for address, port in (("10.0.0.2", 1), ("10.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.1", 3)):
        assert crowd.comes(address, port)
    assert crowd.left() == {("10.0.0.2", 1), ("10.0.0.1", 2), ("10.0.0.1", 3)}
    assert crowd.table.ended == {"10.0.0.1": 1}


def test_a_full_table_loses_the_connection_that_waits_longest(crowd: Crowd) -> None:
    for number in range(1, 5):
        assert crowd.comes(f"10.0.0.{number}", 1)
    crowd.table.begin(("10.0.0.1", 1))
    crowd.table.begin(("10.0.0.2", 1))
    crowd.table.done(("10.0.0.2", 1))
    assert crowd.comes("10.0.0.5", 1)  # 1 works, and 2 waits since a moment
    assert ("10.0.0.3", 1) not in crowd.left()
    assert len(crowd.left()) == 4


def test_connections_with_a_request_in_work_are_never_ended(crowd: Crowd) -> None:
    for port in (1, 2):
        assert crowd.comes("10.0.0.1", port)
        crowd.table.begin(("10.0.0.1", port))
    assert not crowd.comes("10.0.0.1", 3)
    assert crowd.comes("10.0.0.2", 1)
    NOW[0] = 100.0
    crowd.table.end_overdue()
    assert {("10.0.0.1", 1), ("10.0.0.1", 2)} <= crowd.left()
    assert ("10.0.0.2", 1) not in crowd.left()


def test_an_address_of_many_may_take_all_places(crowd: Crowd) -> None:
    assert [crowd.comes("10.0.0.9", port) for port in range(4)] == [True] * 4
    assert [crowd.comes("::ffff:10.0.0.9", port) for port in range(4)] == [True] * 4
    assert {address for address, _ in crowd.left()} == {"::ffff:10.0.0.9"}


@pytest.mark.parametrize(
    ("one", "same"),
    [("2001:db8::1", "2001:db8::2"), ("2001:db8::1", "2001:db8:0:0:ffff::"), ("::ffff:10.0.0.1", "10.0.0.1"),
     ("fe80::1%eth0", "fe80::2%eth1")],
)  # fmt: skip
def test_addresses_of_one_sender_share_its_places(crowd: Crowd, one: str, same: str) -> None:
    for port, address in enumerate((one, same, one)):
        assert crowd.comes(address, port)
    assert crowd.left() == {(same, 1), (one, 2)}


def test_a_connection_that_waits_too_long_ends_and_an_answer_gives_it_more_time(crowd: Crowd) -> None:
    crowd.comes("10.0.0.1", 1)
    crowd.comes("10.0.0.2", 1)
    NOW[0] = 8.0
    crowd.table.begin(("10.0.0.2", 1))
    crowd.table.done(("10.0.0.2", 1))
    NOW[0] = 10.5
    crowd.table.end_overdue()
    assert crowd.left() == {("10.0.0.2", 1)}


def test_a_closed_connection_gives_its_place_back(crowd: Crowd) -> None:
    for port in range(20):
        assert crowd.comes("10.0.0.1", port)
        crowd.made[-1].close()
    assert crowd.table.ended == {}


def test_a_port_that_comes_again_is_a_new_client(crowd: Crowd) -> None:
    crowd.comes("10.0.0.1", 1)
    first = crowd.ends[("10.0.0.1", 1)]
    crowd.table.begin(("10.0.0.1", 1))
    assert crowd.comes("10.0.0.1", 1)
    assert not _is_open(first)
    first.close()
    crowd.made[0].close()  # the place belongs to the second one
    assert crowd.comes("10.0.0.1", 2)
    assert crowd.left() == {("10.0.0.1", 1), ("10.0.0.1", 2)}


def test_connections_leave_half_of_the_file_descriptors_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "getrlimit", lambda _: (6, 6))
    few = Crowd(most=100, most_of_one=100)
    for port in range(5):
        assert few.comes("10.0.0.1", port)
    assert few.left() == {("10.0.0.1", 2), ("10.0.0.1", 3), ("10.0.0.1", 4)}
    for one in (*few.made, *few.ends.values()):
        one.close()


NAMES = ("status_host", "status_port")
DESCRIPTORS = """
import os, resource, socket
from processor.environment.listeners import ConnectionLimits, ConnectionTable, listen
table = ConnectionTable(ConnectionLimits())
(server,) = listen(("host", "port"), "127.0.0.1", 0, table)
clients = [socket.create_connection(server.getsockname()) for _ in range(9)]
taken = [server.accept()[0] for _ in range(3)]
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
full = []
while True:
    try:
        full.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        break
try:
    server.accept()
except BlockingIOError:
    print("ended", sum(one.recv(1) == b"" for one in clients[3:]), "and", sum(one.recv(1) == b"" for one in clients[:3]))
os.close(full.pop())
again = socket.socket()
os.close(full.pop())
again.connect(server.getsockname())
print("took", server.accept()[1][1] == again.getsockname()[1])
"""


def test_a_process_without_descriptors_ends_clients_instead_of_trying_for_ever() -> None:
    ended = subprocess.run([sys.executable, "-c", DESCRIPTORS], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("ended 6 and 3\ntook True\n", 0), ended.stderr


@pytest.mark.parametrize(
    ("host", "port", "why"),
    [
        ("192.0.2.1", 0, "Cannot assign requested address; give an address of this machine with --status-host"),
        ("2001:db8::1", 0, "give an address of this machine with --status-host"),
        ("no.such.name.invalid", 0, "give an address of this machine with --status-host"),
        ("x" * 70, 0, "give an address of this machine with --status-host"),
        ("127.0.0.1", 70_000, "no port has this number; give a --status-port from 1 to 65535"),
        ("127.0.0.1", -1, "give a --status-port from 1 to 65535"),
    ],
)
def test_an_address_that_nobody_can_have_is_a_clear_error(host: str, port: int, why: str) -> None:
    with pytest.raises(SettingError) as error:
        listen(NAMES, host, port, ConnectionTable(ConnectionLimits()))
    assert str(error.value).startswith(f"status_port: cannot listen at {host}, port {port}: ")
    assert str(error.value).endswith(why)


def test_a_port_that_another_program_has_is_an_error_that_names_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(SettingError) as error:
        listen(("host", "port"), "127.0.0.1", other.getsockname()[1], ConnectionTable(ConnectionLimits()))
    said, _, free = str(error.value).rpartition(" ")
    assert said.endswith(": another program listens there; end that one, or give --port")
    with socket.create_server(("127.0.0.1", int(free))):
        pass


def test_a_port_that_needs_more_rights_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(listeners.ListeningSocket, "bind", refuse)
    with pytest.raises(SettingError) as error:
        listen(("host", "port"), "127.0.0.1", 80, ConnectionTable(ConnectionLimits()))
    assert str(error.value) == (
        "port: cannot listen at 127.0.0.1, port 80: Permission denied; give a --port from 1024 on, or the right to open this one"
    )


def test_a_name_listens_at_each_of_its_addresses() -> None:
    sockets = listen(("host", "port"), "localhost", 0, ConnectionTable(ConnectionLimits()))
    assert sockets[0].getsockname()[0] == "127.0.0.1"
    for one in sockets:
        socket.create_connection(one.getsockname()[:2]).close()
        one.close()


@pytest.mark.parametrize("step", ["__init__", "bind"])
@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_a_machine_without_ipv6_listens_at_the_other_addresses_of_a_name(
    monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    done = getattr(listeners.ListeningSocket, step)

    def only_ipv4(one: Any, *given: Any) -> None:
        if given[0] == socket.AF_INET6 or given[0] == ("::1", 0):
            raise OSError(code, "no IPv6 here")
        done(one, *given)

    found = [(family, socket.SOCK_STREAM, 6, "", (host, 0)) for family, host in ((2, "127.0.0.1"), (10, "::1"))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(listeners.ListeningSocket, step, only_ipv4)
    (one,) = listen(("host", "port"), "localhost", 0, ConnectionTable(ConnectionLimits()))
    assert one.getsockname()[0] == "127.0.0.1"
    one.close()


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
