"""`statestore serve` and `statestore mcp` as processes, over a real registry and a real table in Postgres."""

import json
import os
import socket
import ssl
import subprocess
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp import Client, StdioServerParameters

from processor.engine.plan.planning import requirements_of
from processor.language.definitions.load import load
from registry.repository import Registry
from tests.integration.web.serve.served_process import (
    COMMAND,
    ENTITIES,
    PROFILE,
    SECONDS,
    TOKEN,
    asked,
    serving,
    stored_row,
)


@pytest.fixture
def environment(registry: Registry, postgres_url: str, schema: str) -> dict[str, str]:
    """The variables that lead to a registry with one stored row."""
    return stored_row(registry, postgres_url, postgres_url, schema)


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


@pytest.mark.parametrize("verb", ["serve", "console"])
def test_a_busy_port_is_an_error_and_no_address_is_shown(environment: dict[str, str], verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        argv = [*COMMAND, verb, "--port", str(port)]
        ended = subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, timeout=SECONDS)
    message = f"statestore {verb}: port: cannot listen at 127.0.0.1, port {port}: another program listens there; "
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"{message}end that one, or give --port ")
    assert ended.stderr.count("\n") == 1


def test_half_requests_keep_nobody_out_of_a_process_with_few_descriptors(environment: dict[str, str]) -> None:
    limited = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh"]
    with serving(environment, before=limited) as port, ExitStack() as opened:
        for _ in range(300):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
            with suppress(OSError):  # a later one may have its place already
                client.sendall(b"GET /health HTTP/1.1\r\nHost: local")
        assert httpx2.get(f"http://127.0.0.1:{port}/documents/profile/1", timeout=SECONDS).json()["name"] == "ada"


def test_an_assistant_reads_over_standard_input_and_output(environment: dict[str, str]) -> None:
    given = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=os.environ | environment)

    async def ask() -> Any:
        async with Client(given) as client:
            return await client.call_tool("get", {"product": "profile", "key": "1"})

    answer = anyio.run(ask)
    assert answer.structured_content == {
        "document": {"id": 1, "name": "ada"},
        "sequence": 1,
        "published": True,
        "waits": False,
        "age": None,
    }


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
