"""A TCP proxy before a part, which can cut: it refuses connections as a dead server does, or says nothing as a dead network does.

Promises: each byte of a connection arrives in its order, or the connection ends. While the proxy is silent it holds what it got,
and hands it on when it opens again. Does not: look into the bytes.
"""

import socket
import struct
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any

from processor.environment.programs.program import LOOPBACK, free_port

CHUNK = 65_536
RESET = struct.pack("ii", 1, 0)
"""A socket with this SO_LINGER ends by a reset, as those of a killed process do."""


class CutConnections:
    """The proxy, open at first. `address`: of the part; a client uses `port` on the loopback address."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address, self.port = address, free_port()
        self._flows, self._lock = Event(), Lock()
        self._connections: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._flows.set()
        self.open()

    def open(self) -> None:
        """Hands on all bytes again, and takes connections."""
        self._flows.set()
        if self._listener is not None:
            return
        self._listener = socket.create_server((LOOPBACK, self.port), backlog=128)
        Thread(target=self._accept, args=(self._listener,), name="cut connections", daemon=True).start()

    def refuse(self) -> None:
        """Resets all connections, and refuses new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # else the thread in `accept` keeps the port open
            listener.close()
        self._flows.set()
        with self._lock:
            connections, self._connections = self._connections, set()
        for connection in connections:
            _reset(connection)

    def silence(self) -> None:
        """Keeps all connections and takes new ones, and hands on nothing."""
        self._flows.clear()

    close = refuse

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            Thread(target=self._connect, args=(client,), name="a cut connection", daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._flows.wait()
        try:
            server = socket.create_connection(self.address, 5)
        except OSError:
            _reset(client)
            return
        server.settimeout(None)
        with self._lock:
            if self._listener is None:  # a cut came meanwhile
                _reset(client)
                _reset(server)
                return
            self._connections |= {client, server}
        other = Thread(target=self._hand_on, args=(server, client), name="a cut connection", daemon=True)
        other.start()
        self._hand_on(client, server)
        other.join()
        with self._lock:
            self._connections -= {client, server}
        for end in (client, server):
            end.close()

    def _hand_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                self._flows.wait()
                target.sendall(data)
            self._flows.wait()
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, target):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def _reset(connection: Any) -> None:
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.shutdown(socket.SHUT_RD)
    connection.close()
