"""The sockets at which a server listens. They exist, and take clients, before the server prints its address.

Where the process has no file descriptor left, a socket takes a client with a spare one and ends it. asyncio would try again
thousands of times a second instead, each time with a line in the log.
"""

import errno
import os
import socket
from contextlib import ExitStack, suppress
from typing import Final

from processor.errors import SettingError
from processor.listeners.connection_table import Connection, ConnectionTable

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
        except OSError:  # nobody is there, or another thread has the descriptor
            raise BlockingIOError from None
        finally:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)


def listen(names: tuple[str, str], host: str, port: int, connections: ConnectionTable) -> list[ListeningSocket]:
    """The sockets at host and port, one for each address of the host, those of IPv4 first. `names`: of the settings that say host
    and port. Raises SettingError where they cannot be had."""
    try:
        return _sockets(host, port, connections)
    except (OSError, OverflowError, UnicodeError) as error:
        host_flag, port_flag = (f"--{name.replace('_', '-')}" for name in names)
        why = getattr(error, "strerror", None) or error
        match getattr(error, "errno", None):
            case errno.EADDRINUSE:
                cure = f"give another {port_flag}"
            case errno.EACCES | errno.EPERM:
                cure = f"give a {port_flag} from 1024 on, or the right to open this one"
            case None if isinstance(error, OverflowError):
                cure = f"give a {port_flag} from 1 to 65535"
            case _:
                cure = f"give an address of this machine with {host_flag}"
        raise SettingError(f"{names[1]}: cannot listen at {host}, port {port}: {why}; {cure}") from None


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
