"""Where a server may listen, what it says where it cannot, and that it takes clients without a free file descriptor."""

import errno
import socket
import subprocess
import sys
from typing import Any

import pytest

from processor.errors import SettingError
from processor.listeners import listening_socket
from processor.listeners.connection_table import ConnectionLimits, ConnectionTable
from processor.listeners.listening_socket import listen

NAMES = ("status_host", "status_port")
DESCRIPTORS = """
import os, resource, socket
from processor.listeners.connection_table import ConnectionLimits, ConnectionTable
from processor.listeners.listening_socket import listen
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


def test_a_port_that_another_program_has_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(SettingError) as error:
        listen(("host", "port"), "127.0.0.1", other.getsockname()[1], ConnectionTable(ConnectionLimits()))
    assert str(error.value).endswith(": Address already in use; give another --port")


def test_a_port_that_needs_more_rights_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(listening_socket.ListeningSocket, "bind", refuse)
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
    done = getattr(listening_socket.ListeningSocket, step)

    def only_ipv4(one: Any, *given: Any) -> None:
        if given[0] == socket.AF_INET6 or given[0] == ("::1", 0):
            raise OSError(code, "no IPv6 here")
        done(one, *given)

    found = [(family, socket.SOCK_STREAM, 6, "", (host, 0)) for family, host in ((2, "127.0.0.1"), (10, "::1"))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(listening_socket.ListeningSocket, step, only_ipv4)
    (one,) = listen(("host", "port"), "localhost", 0, ConnectionTable(ConnectionLimits()))
    assert one.getsockname()[0] == "127.0.0.1"
    one.close()
