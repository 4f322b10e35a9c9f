"""`statestore serve` and `statestore mcp` as processes, over a real registry and a real table in Postgres."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import anyio
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp import Client, StdioServerParameters

from processor.definitions.load import load
from processor.local.readiness import free_port
from processor.plan.planning import plan_of, requirements_of
from processor.progress.identity import write_identity
from processor.records.record import Record
from processor.settings.settings import Settings
from processor.stores.kinds import open_store
from processor.trial.trial import Trial
from registry.repository import Registry

ENTITIES = {"user": {"topic": "user", "key": ["id"], "columns": {"id": "int", "name": "string"}}}
PROFILE = {"product": "profile", "topic": "profile", "root": "user", "fields": ["id", "name"]}
USER = Record(topic="user", partition=0, offset=0, key=b'{"id":1}', value=b'{"id":1,"name":"ada"}')
COMMAND = [sys.executable, "-c", "from processor.cli.main import main; raise SystemExit(main())"]
TOKEN = "a-long-random-token"
SECONDS = 60.0


def definitions(**more: Any) -> Any:
    return load({"entities.yaml": json.dumps(ENTITIES), "profile.yaml": json.dumps(PROFILE | more)})


@pytest.fixture
def environment(registry: Registry, postgres_url: str, schema: str) -> dict[str, str]:
    """The variables that lead to a registry with one stored row."""
    table = f"t_{schema}"
    settings = Settings(
        registry=postgres_url, registry_schema=schema, store="postgres", store_url=postgres_url, table=table
    )
    registry.apply(requirements_of(definitions()), who="a test", why="a product")
    store, bound = open_store(settings), registry.binding()
    store.create(5)
    store.write(write_identity(bound.identity))
    trial = Trial(plan=plan_of(registry.snapshot()), settings=settings, other_store=store)
    trial.batch([USER])
    trial.finish()
    store.close()
    registry.bind(replace(bound, job="statestore", table=settings.place))
    names = {"REGISTRY": postgres_url, "REGISTRY_SCHEMA": schema, "STORE": "postgres", "STORE_URL": postgres_url}
    return {f"STATESTORE_{name}": value for name, value in {**names, "TABLE": table}.items()} | {"TOKEN": TOKEN}


@contextmanager
def serving(environment: dict[str, str], *flags: str) -> Iterator[int]:
    """The port of a server that listens. SIGTERM ends it with status 0."""
    port = free_port()
    argv = [*COMMAND, "serve", "--port", str(port), *flags]
    with subprocess.Popen(argv, env=os.environ | environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "look-ups at" in process.stderr.readline()
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) in (0, -signal.SIGTERM)
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()


def asked(ask: Callable[[], httpx2.Response], status: int = 200) -> httpx2.Response:
    """The answer, once it has this status."""
    until = monotonic() + SECONDS
    while True:
        try:
            answer = ask()
        except httpx2.ConnectError:  # uvicorn does not listen yet
            answer = None
        if answer is not None and answer.status_code == status:
            return answer
        assert monotonic() < until, answer and answer.text
        sleep(0.05)


def test_a_process_answers_and_takes_new_definitions(environment: dict[str, str], registry: Registry) -> None:
    with (
        serving(environment, "--token", "env:TOKEN") as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http,
    ):
        assert asked(lambda: http.get("/health"), 401).json()["status"] == 401
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        answer = http.get("/documents/profile/1")
        assert answer.json() == {"id": 1, "name": "ada"}
        assert answer.headers["statestore-sequence"] == "1"
        assert http.get("/documents/profile/1", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        assert "server" not in answer.headers
        second = {"product": "names", "topic": "names", "root": "user", "fields": ["name"]}
        more = load(
            {
                "entities.yaml": json.dumps(ENTITIES),
                "profile.yaml": json.dumps(PROFILE),
                "names.yaml": json.dumps(second),
            }
        )
        registry.apply(requirements_of(more), who="a test", why="another product")
        assert asked(lambda: http.get("/documents/names/1")).json() == {"name": "ada"}


def test_certificates_of_clients(environment: dict[str, str], tmp_path: Path) -> None:
    authority = _Authority(tmp_path)
    server, client = authority.issue("server"), authority.issue("client")
    stranger = _Authority(tmp_path / "other").issue("foreign")
    flags = ("--certificate", server[0], "--key", server[1], "--client-ca", authority.file, "--host", "0.0.0.0")
    with serving(environment, *flags) as port:
        address = f"https://127.0.0.1:{port}/documents/profile/1"
        assert asked(lambda: httpx2.get(address, verify=authority.context(client))).json() == {"id": 1, "name": "ada"}
        for refused in (None, stranger):
            with pytest.raises(httpx2.TransportError):
                httpx2.get(address, verify=authority.context(refused))


def test_another_address_without_a_token_is_refused(environment: dict[str, str]) -> None:
    argv = [*COMMAND, "serve", "--host", "0.0.0.0"]
    ended = subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 1
    assert ended.stderr.startswith(
        "statestore serve: --host 0.0.0.0 is reachable from other machines: give --token REF"
    )


def test_an_assistant_reads_over_standard_input_and_output(environment: dict[str, str]) -> None:
    given = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=os.environ | environment)

    async def ask() -> Any:
        async with Client(given) as client:
            return await client.call_tool("get", {"product": "profile", "key": "1"})

    answer = anyio.run(ask)
    assert answer.structured_content["document"] == {"id": 1, "name": "ada"}
    assert answer.structured_content["published"]


class _Authority:
    """An authority that a test makes, with its file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {folder.name}")])
        made = self._builder(self._name, self._key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file = self._write(
            "ca.pem", made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    def issue(self, name: str) -> tuple[str, str]:
        """The files of a certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._builder(subject, key.public_key()).add_extension(names, critical=False)
        signed = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._write(f"{name}.pem", signed), self._write(f"{name}.key", private)

    def context(self, client: tuple[str, str] | None) -> ssl.SSLContext:
        """The TLS of a client with this certificate, or without one."""
        context = ssl.create_default_context(cafile=self.file)
        if client is not None:
            context.load_cert_chain(*client)
        return context

    def _builder(self, subject: x509.Name, key: Any) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))

    def _write(self, name: str, content: bytes) -> str:
        path = self._folder / name
        path.write_bytes(content)
        return str(path)
