"""What each HTTP listener of statestore shares: the Host of a request, its connections with their limits, and its sockets.

A site in a browser may lead a name of its own to this machine (DNS rebinding), and the Host of a request then has that name. So a
listener takes only requests that name it as its people do.

Promises: unfinished requests keep nobody out. A connection beyond a limit takes the place of the oldest one without a request in
work. So half requests and slow clients, however many, end before the server refuses a new client. A connection without a request
in work ends after some seconds. The sockets exist, and take clients, before the server prints its address.

Where the process has no file descriptor left, a socket takes a client with a spare one and ends it. asyncio would try again
thousands of times a second instead, each time with a line in the log.

Does not read a byte: the server says which connections have a request in work.
"""

import errno
import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network, ip_address
from resource import RLIMIT_NOFILE, getrlimit
from threading import RLock
from time import monotonic
from typing import Final

from processor.errors import SettingError

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine for its own users."""
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\\,\[\]]+)(?::[0-9]{0,5})?", re.ASCII)
"""A name or an address, perhaps with a port."""


def is_named(host: str, names: Collection[str]) -> bool:
    """Whether the header `Host` has one of the names, which are as `plain_name` has them."""
    found = _HOST.fullmatch(host)
    return found is not None and plain_name(found[1]) in names


def plain_name(name: str) -> str:
    """A name or an address in its one form: without brackets, and in lower case."""
    text = name.strip("[]").removesuffix(".").lower()
    try:
        return str(ip_address(text))
    except ValueError:
        return text


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Peer = tuple[str, int]
"""The address and the port of a client."""
THIS_MACHINE: Final = frozenset({"127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of a server."""

    most: int = 512
    """Connections, but at most half of the file descriptors that the process may have."""
    most_of_one: int = 64
    """Of an address (IPv6: of a network /64)."""
    shared: frozenset[str] = THIS_MACHINE
    """Addresses of many clients, such as a proxy, without that limit."""
    seconds: float = 20.0
    """Of a request until it is complete, and of an answer until the client has it."""
    clock: Callable[[], float] = monotonic


class Connection(socket.socket):
    """A connection of a client. `since`: when it or its last answer began; `working`: whether a request is in work."""

    def __init__(self, table: "ConnectionTable", peer: Peer, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self._table, self.peer = table, peer
        self.since, self.working = 0.0, False

    def close(self) -> None:
        """Closes it, and gives its place back."""
        self._table.leave(self)
        super().close()


class ConnectionTable:
    """The connections. Threads may share them."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits, self._lock = limits, RLock()
        self._most = min(limits.most, max(1, getrlimit(RLIMIT_NOFILE)[0] // 2))
        self._open: dict[Peer, Connection] = {}  # those that wait longest are first
        self._count: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        """How many the table ended, by address, until somebody clears it."""

    def take(self, connection: Connection) -> bool:
        """Gives a new connection a place. False where all places have a request in work."""
        sender = self._sender(connection.peer)
        with self._lock:
            if before := self._open.get(connection.peer):  # its client is gone, since no other one has this port
                self._end(before)
            if sender and self._count[sender] >= self._limits.most_of_one and not self.end_oldest(sender):
                return False
            if len(self._open) >= self._most and not self.end_oldest():
                return False
            self._count[sender] += 1
            self._wait(connection)
        return True

    def leave(self, connection: Connection) -> None:
        """Takes the place of a connection back, if it still has one."""
        with self._lock:
            if self._open.get(connection.peer) is connection:
                del self._open[connection.peer]
                sender = self._sender(connection.peer)
                self._count[sender] -= 1
                if not self._count[sender]:
                    del self._count[sender]

    def begin(self, peer: Peer) -> None:
        """A request of this client is complete, and its work begins."""
        with self._lock:
            if connection := self._open.get(peer):
                connection.working = True

    def done(self, peer: Peer) -> None:
        """The work is done, and the client gets the answer."""
        with self._lock:
            if connection := self._open.pop(peer, None):
                self._wait(connection)

    def end_oldest(self, sender: str | None = None) -> bool:
        """Ends the connection that waits longest, of all or of one sender. False where none waits."""
        with self._lock:
            for peer, connection in self._open.items():
                if not connection.working and sender in (None, self._sender(peer)):
                    self._end(connection)
                    return True
        return False

    def end_overdue(self) -> None:
        """Ends the connections that wait too long. A server calls this at least once a second."""
        with self._lock:
            until = self._limits.clock() - self._limits.seconds
            for connection in list(self._open.values()):
                if not connection.working and connection.since < until:
                    self._end(connection)

    def _wait(self, connection: Connection) -> None:
        connection.working, connection.since = False, self._limits.clock()
        self._open[connection.peer] = connection

    def _end(self, connection: Connection) -> None:
        """Ends it. The server then reads its end, and closes it."""
        self.ended[connection.peer[0]] += 1
        self.leave(connection)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def _sender(self, peer: Peer) -> str:
        """Who sends, as far as limits count; empty for an address of many."""
        if peer[0] in self._limits.shared:
            return ""
        address = ip_address(peer[0].partition("%")[0])
        if isinstance(address, IPv4Address):
            return str(address)
        mapped = address.ipv4_mapped
        if mapped is None:
            return str(IPv6Network((int(address), 64), strict=False))
        return "" if str(mapped) in self._limits.shared else str(mapped)


BACKLOG: Final = 128
"""Clients that wait until the server takes them."""
_NO_DESCRIPTOR: Final = {errno.EMFILE, errno.ENFILE}
_NOT_HERE: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""An address of a name that this machine does not have, such as that of IPv6."""


class ListeningSocket(socket.socket):
    """A socket whose clients have places in a table of connections. It never waits for a client."""

    def __init__(self, family: int, connections: ConnectionTable) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._connections, self._spare = connections, os.open(os.devnull, os.O_RDONLY)
        self.setblocking(False)

    def accept(self) -> tuple[socket.socket, tuple[object, ...]]:
        """The next client with a place. Raises BlockingIOError where there is none."""
        while True:
            try:
                taken, address = super().accept()
            except OSError as error:
                if error.errno not in _NO_DESCRIPTOR:
                    raise
                self._shed()
                continue
            connection = Connection(self._connections, (str(address[0]), int(address[1])), taken.detach())
            connection.setblocking(True)  # on some systems it is as the listening socket
            if self._connections.take(connection):
                return connection, address
            connection.close()

    def close(self) -> None:
        """Closes the socket."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        super().close()

    def _shed(self) -> None:
        """Ends the next client, and the one that waits longest. Raises BlockingIOError where no client comes: only an accept with
        a free descriptor can tell."""
        self._connections.end_oldest()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        try:
            super().accept()[0].close()
        except OSError:  # the peer is gone, or another thread has the descriptor
            raise BlockingIOError from None
        finally:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)


def listen(names: tuple[str, str], host: str, port: int, connections: ConnectionTable) -> list[ListeningSocket]:
    """The sockets at host and port, one for each address of the host, those of IPv4 first. `names`: of the settings that say host
    and port. Raises SettingError if it cannot listen there."""
    try:
        return _sockets(host, port, connections)
    except (OSError, OverflowError, UnicodeError) as error:
        host_flag, port_flag = (f"--{name.replace('_', '-')}" for name in names)
        why = getattr(error, "strerror", None) or error
        match getattr(error, "errno", None):
            case errno.EADDRINUSE:
                why = "another program listens there"
                cure = f"end that one, or give {port_flag} {_next_free(host, port)}"
            case errno.EACCES | errno.EPERM:
                cure = f"give a {port_flag} from 1024 on, or the right to open this one"
            case None if isinstance(error, OverflowError):
                cure = f"give a {port_flag} from 1 to 65535"
            case _:
                cure = f"give an address of this machine with {host_flag}"
        raise SettingError(f"{names[1]}: cannot listen at {host}, port {port}: {why}; {cure}") from None


def _next_free(host: str, port: int) -> int | str:
    """The next port that is free at the moment."""
    for later in range(port + 1, min(port + 100, 65536)):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with suppress(OSError), socket.create_server((host, later), family=family):
            return later
    return "N"


def _sockets(host: str, port: int, connections: ConnectionTable) -> list[ListeningSocket]:
    if not 0 <= port <= 65535:  # the look-up of an address would take it modulo 65536
        raise OverflowError("no port has this number")
    found = sorted(set(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)))
    made: list[ListeningSocket] = []
    for family, *_, address in found:
        try:
            made.append(_bound(family, address, connections, several=len(found) > 1))
        except OSError as error:
            if error.errno not in _NOT_HERE or not made:
                for one in made:
                    one.close()
                raise
    return made


def _bound(family: int, address: tuple[object, ...], connections: ConnectionTable, *, several: bool) -> ListeningSocket:
    """A socket at one address, which is one of several of its host."""
    with ExitStack() as opened:
        one = opened.enter_context(ListeningSocket(family, connections))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and several:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
        one.listen(BACKLOG)
        opened.pop_all()
    return one
