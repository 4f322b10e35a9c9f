"""The way to DynamoDB: TLS with the authorities of the environment, and proxies. Both clients must go it alike."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_connection, socket
from threading import Thread
from typing import Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from statestore.dynamodb.connections import Endpoint
from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore
from statestore.store import Query, Transient

QUERY = Query(slot="GSI_1", value="a")
HASTY = Patience(attempts=2, connect_s=5.0, read_s=5.0, backoff_s=0.001)
Client = Literal["lean", "boto3"]
BOTH: tuple[Client, ...] = ("lean", "boto3")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")


class Api(ThreadingHTTPServer):
    """Answers every query with no items, and tunnels what it is asked to. `asked`: method and path; `passwords`: of proxies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.passwords: list[str | None] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may refuse the certificate."""


class _Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._note()
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "12")
        self.end_headers()
        self.wfile.write(b'{"Items":[]}')

    def do_CONNECT(self) -> None:
        self._note()
        host, _, port = self.path.partition(":")
        with create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            Thread(target=_pump, args=(there, self.connection), daemon=True).start()
            _pump(self.connection, there)
        self.close_connection = True

    def _note(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.passwords.append(self.headers["Proxy-Authorization"])

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def _pump(source: socket, target: socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
    except OSError:
        """One of the two ended."""


@contextmanager
def serve(certificate: Path | None = None) -> Iterator[Api]:
    with Api() as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `localhost` that signs itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def ask(url: str, client: Client) -> None:
    store = DynamoStore(table="state", endpoint_url=url, region="eu-west-1", client=client, patience=HASTY)
    try:
        assert store.query(QUERY) == []
    finally:
        store.close()


@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_an_authority_of_the_environment_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, client: Client, variable: str
) -> None:
    monkeypatch.setenv(variable, str(certificate))
    with serve(certificate) as api:
        ask(f"https://localhost:{api.server_port}", client)
    assert api.asked == ["POST /"]


@pytest.mark.parametrize("client", BOTH)
def test_an_unknown_authority_is_not_trusted(certificate: Path, client: Client) -> None:
    with (
        serve(certificate) as api,
        pytest.raises(Transient, match=r"SSL validation failed for https://localhost:\d+/ "),
    ):
        ask(f"https://localhost:{api.server_port}", client)
    assert api.asked == []


def test_certificates_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(
        Transient, match=r"connecting: SSL validation failed for https://localhost:8000/ .*No such file"
    ):
        ask("https://localhost:8000", "lean")


@pytest.mark.parametrize("client", BOTH)
def test_a_certificate_of_another_host_is_refused(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with serve(certificate) as api, pytest.raises(Transient, match="SSL validation failed for https://127"):
        ask(f"https://127.0.0.1:{api.server_port}", client)
    assert api.asked == []


@pytest.mark.parametrize("client", BOTH)
def test_tls_goes_through_the_tunnel_of_a_proxy(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with serve(certificate) as api, serve() as tunnel:
        monkeypatch.setenv("HTTPS_PROXY", f"http://mona:sec%20ret@127.0.0.1:{tunnel.server_port}")
        ask(f"https://localhost:{api.server_port}", client)
    assert tunnel.asked == [f"CONNECT localhost:{api.server_port}"]
    assert tunnel.passwords == ["Basic bW9uYTpzZWMgcmV0"]
    assert (api.asked, api.passwords) == (["POST /"], [None])


@pytest.mark.parametrize("client", BOTH)
def test_a_proxy_gets_the_whole_address_and_the_password_without_tls(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    with serve() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"mona:sec%20ret@127.0.0.1:{proxy.server_port}")
        ask("http://dynamodb.invalid:8000", client)
    assert proxy.asked == ["POST http://dynamodb.invalid:8000/"]
    assert proxy.passwords == ["Basic bW9uYTpzZWMgcmV0"]


@pytest.mark.parametrize("client", BOTH)
def test_a_proxy_that_is_not_there_is_transient_and_its_password_is_hidden(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://mona:secret@127.0.0.1:1")
    with pytest.raises(Transient, match=r"proxy URL: \"http://\*\*\*") as error:
        ask("https://localhost:8000", client)
    assert "secret" not in str(error.value)


def test_boto3_serves_behind_a_proxy_with_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "https://proxy.example.org:3128")
    store = DynamoStore(table="state", endpoint_url="https://localhost:8000", region="eu-west-1")
    assert store._client is store._boto3


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://dynamodb.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com", "/"),
        ("https://dynamodb.eu-west-1.amazonaws.com:443/", "dynamodb.eu-west-1.amazonaws.com", "/"),
        ("http://LOCALHOST:8000", "localhost:8000", "/"),
        ("http://localhost:443", "localhost:443", "/"),
        ("http://[::1]:8000/shop/table", "[::1]:8000", "/shop/table"),
    ],
)
def test_an_endpoint_has_a_host_and_a_path(url: str, host: str, path: str) -> None:
    endpoint = Endpoint(url=url)
    assert (endpoint.host, endpoint.path) == (host, path)
    assert endpoint.head == f"POST {path} HTTP/1.1\r\nHost: {host}\r\n"
