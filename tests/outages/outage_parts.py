"""The parts around the job: each behind a proxy that cuts, and servers that die and start again at the same address.

cut        the proxy resets all connections and refuses new ones: a security group, a node that is gone
silent     the proxy hands on nothing: a network that loses packets
crash      the server ends at once, as by kill -9 or `pg_ctl stop -m immediate`, and starts again later
restart    the server ends in order, as in an upgrade, and starts again later
failing    the schema registry answers 503
"""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from time import sleep
from urllib.parse import urlsplit, urlunsplit

from processor.environment.programs.program import LOOPBACK, EmbeddedPart, SecretUrl, free_port
from processor.environment.programs.servers import start_dynamodb_local, start_kafka, start_store_postgres
from tests.outages.cut_connections import CutConnections
from tests.support.registry_stub import RegistryStub

CUTS = ("cut", "silent")
BROKER, REGISTRY, STORE, SCHEMAS = "broker", "registry", "store", "schema registry"
UNAVAILABLE = [503] * 1_000_000


class Server:
    """A server behind a proxy. `start`: starts it, again at the same port with the same data. `signals`: the signal of each way
    in which it ends. `proxy`: the one that it knows already, if it does."""

    def __init__(
        self,
        name: str,
        start: Callable[[], EmbeddedPart],
        signals: Mapping[str, signal.Signals],
        proxy: CutConnections | None = None,
    ) -> None:
        self.name, self.ways = name, (*CUTS, *signals)
        self._start, self._signals = start, signals
        self._part = self._first = start()
        self._ends = False
        self.proxy = proxy or CutConnections((LOOPBACK, _port(self.endpoint)))

    @property
    def endpoint(self) -> str:
        """The address of the server itself, which the job does not know."""
        return str.__str__(self._part.endpoint)

    @property
    def address(self) -> str:
        """The address of the proxy, as the job gets it."""
        if "://" not in self.endpoint:
            return f"{LOOPBACK}:{self.proxy.port}"
        parts = urlsplit(self.endpoint)
        place = parts.netloc.rpartition(":")[0]
        return SecretUrl(urlunsplit(parts._replace(netloc=f"{place}:{self.proxy.port}")))

    def fail(self, way: str) -> None:
        if way == "silent":
            self.proxy.silence()
            return
        if way in self._signals:
            os.kill(self._part.process.pid, self._signals[way])
            self._ends = True
        self.proxy.refuse()

    def repair(self) -> None:
        if self._ends:
            while self._part.alive():
                sleep(0.05)
            before = self.endpoint
            self._part, self._ends = self._start(), False
            assert self.endpoint == before, f"another program took the port of {self.name}"
        self.proxy.open()

    def close(self) -> None:
        """Ends the server, and the proxy."""
        self.proxy.close()
        for part in (self._part, self._first):  # the end of the first may remove the data
            part.stop()


class Schemas:
    """The schema registry of the tests, behind a proxy."""

    name, ways = SCHEMAS, (*CUTS, "failing")

    def __init__(self, stub: RegistryStub) -> None:
        self.stub = stub
        self.proxy = CutConnections((LOOPBACK, _port(stub.url)))

    @property
    def address(self) -> str:
        """The address of the proxy, as the job gets it."""
        return f"http://{LOOPBACK}:{self.proxy.port}"

    def fail(self, way: str) -> None:
        if way == "silent":
            self.proxy.silence()
        elif way == "cut":
            self.proxy.refuse()
        else:
            self.stub.fails = list(UNAVAILABLE)

    def repair(self) -> None:
        self.stub.fails = []
        self.proxy.open()

    def close(self) -> None:
        """Ends the proxy."""
        self.proxy.close()


def postgres(name: str, folder: Path) -> Server:
    """A Postgres with data of its own."""
    port = free_port()
    signals = {"crash": signal.SIGQUIT, "restart": signal.SIGINT}  # SIGKILL would leave its shared memory
    return Server(name, lambda: start_store_postgres(folder / name, port=port), signals)


def kafka(folder: Path) -> Server:
    """A broker with two listeners: its own, and one whose clients come through the proxy, because it tells them the proxy's
    port."""
    own, behind = free_port(), free_port()
    proxy = CutConnections((LOOPBACK, behind))
    more = {
        "listeners": f"JOB://{LOOPBACK}:{behind}",
        "advertised.listeners": f"JOB://{LOOPBACK}:{proxy.port}",
        "listener.security.protocol.map": "JOB:PLAINTEXT",
    }
    signals = {"crash": signal.SIGKILL, "restart": signal.SIGTERM}
    return Server(BROKER, lambda: start_kafka(folder / BROKER, port=own, more=more), signals, proxy)


def dynamodb(folder: Path) -> Server:
    """DynamoDB Local: it has its data in memory, so it never ends."""
    return Server(STORE, lambda: start_dynamodb_local(folder / STORE), {})


def _port(endpoint: str) -> int:
    port = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").port
    assert port is not None
    return port
