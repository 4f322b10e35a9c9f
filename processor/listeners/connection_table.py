"""The open connections of a server, and their limits: unfinished requests keep nobody out.

Promises: a connection beyond a limit takes the place of the oldest one without a request in work. So half requests and slow
clients, however many, end before the server refuses a new client. A connection without a request in work ends after some seconds.
Does not read a byte: the server says which connections have a request in work.
"""

import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network, ip_address
from resource import RLIMIT_NOFILE, getrlimit
from threading import RLock
from time import monotonic
from typing import Final

Peer = tuple[str, int]
"""The address and the port of a client."""
THIS_MACHINE: Final = frozenset({"127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """`most`: connections, but at most half of the file descriptors that the process may have; `most_of_one`: of an address
    (IPv6: of a network /64); `shared`: addresses of many clients, such as a proxy, without that limit; `seconds`: of a request
    until it is complete, and of an answer until the client has it."""

    most: int = 512
    most_of_one: int = 64
    shared: frozenset[str] = THIS_MACHINE
    seconds: float = 20.0
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
            if before := self._open.get(connection.peer):  # its client is gone, since nobody else has this port
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
