"""A broker with a listener for each way to prove who a client is, and certificates that the tests make themselves."""

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from time import time
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from processor.environment.programs.program import LOOPBACK, free_port
from processor.environment.programs.servers import start_kafka

USER, CANARY = "statestore", "canary7c1e"
PASSWORD = f'{CANARY}"of\\the secret'
"""A password with the characters that JAAS escapes."""
VARIABLE = "KAFKA_SECRET"
"""The variable that holds the password, for the client."""
LOGIN = "org.apache.kafka.common.security"
LISTENERS = {
    "SCRAM": ("SASL_SSL", "SCRAM-SHA-512", f"{LOGIN}.scram.ScramLoginModule required;"),
    "PLAIN": ("SASL_PLAINTEXT", "PLAIN", f"{LOGIN}.plain.PlainLoginModule required user_{USER}={{password}};"),
    "OAUTH": (
        "SASL_PLAINTEXT",
        "OAUTHBEARER",
        f'{LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
    ),
    "TLS": ("SSL", "", ""),
}
"""Each listener: its protocol, its mechanism, and the broker's login."""


@dataclass(kw_only=True)
class Authority:
    """Makes certificates that it signs itself."""

    folder: Path
    name: str
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    @property
    def file(self) -> Path:
        path = self.folder / f"{self.name}.pem"
        path.write_bytes(self._sign(self.name, self.key).public_bytes(serialization.Encoding.PEM))
        return path

    def issue(self, name: str) -> tuple[Path, Path]:
        """A certificate and its key in PKCS#8, as two files."""
        key = rsa.generate_private_key(65537, 2048)
        certificate, file = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate.write_bytes(self._sign(name, key).public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        return certificate, file

    def _sign(self, name: str, key: rsa.RSAPrivateKey) -> x509.Certificate:
        now = datetime.now(UTC)
        subject, issuer = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)]) for one in (name, self.name))
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=key is self.key, path_length=None), critical=True)
        # Python 3.13 verifies strictly: it wants the identifiers of both keys, and the use of an authority's key
        own, theirs = key.public_key(), self.key.public_key()
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
        made = made.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(theirs), critical=False)
        if key is self.key:
            names = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
            others = dict.fromkeys((*names, "encipher_only", "decipher_only"), False)
            usage = x509.KeyUsage(digital_signature=True, key_cert_sign=True, **others)
            made = made.add_extension(usage, critical=True)
        here = x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))])
        return made.add_extension(here, critical=False).sign(self.key, hashes.SHA256())


@dataclass(frozen=True, kw_only=True)
class SecuredBroker:
    """The address of each listener, and the files and the token endpoint of its clients. `open`: a listener without security."""

    open: str
    addresses: dict[str, str]
    authority: Authority
    folder: Path
    endpoint: "TokenEndpoint"

    def table(self, listener: str) -> dict[str, str]:
        """The table [kafka] for a listener."""
        protocol, mechanism, _ = LISTENERS[listener]
        made = {"security.protocol": protocol} | ({"sasl.mechanism": mechanism} if mechanism else {})
        if protocol.endswith("SSL"):
            made["ssl.ca.pem"] = f"file:{self.authority.file}"
        if listener == "TLS":
            made["ssl.certificate.pem"], made["ssl.key.pem"] = (
                f"file:{self.folder}/client.{end}" for end in ("pem", "key")
            )
            made["ssl.key.password"] = f"env:{VARIABLE}"
        elif listener == "OAUTH":
            made["sasl.oauthbearer.token.endpoint.url"] = self.endpoint.address
            made["sasl.oauthbearer.client.id"] = USER
            made["sasl.oauthbearer.client.secret"] = f"env:{VARIABLE}"
        else:
            made |= {"sasl.username": USER, "sasl.password": f"env:{VARIABLE}"}
        return made


@contextmanager
def secured_broker(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[SecuredBroker]:
    """Starts the broker, with `more` settings, and the token endpoint; they end with the block."""
    authority = Authority(folder=folder, name="authority")
    encrypt(authority.issue("client")[1], "-v1", "PBE-SHA1-3DES")
    addresses = {name: f"{LOOPBACK}:{free_port()}" for name in LISTENERS}
    endpoint = TokenEndpoint((LOOPBACK, 0), TokenRequest)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    with allowed_address(endpoint.address):
        part = start_kafka(folder / "broker", more=_settings(addresses, authority, endpoint.address) | dict(more or {}))
    try:
        _add_user(part.endpoint)
        yield SecuredBroker(
            open=part.endpoint,
            addresses=addresses,
            authority=authority,
            folder=folder,
            endpoint=endpoint,
        )
    finally:
        endpoint.shutdown()
        endpoint.server_close()
        part.stop()


def encrypt(key: Path, *scheme: str) -> None:
    """Encrypts a key with PASSWORD."""
    command = ["openssl", "pkcs8", "-topk8", *scheme, "-in", str(key), "-passout", f"env:{VARIABLE}"]
    done = subprocess.run(command, env={**os.environ, VARIABLE: PASSWORD}, capture_output=True, check=True)
    key.write_bytes(done.stdout)


@contextmanager
def allowed_address(address: str) -> Iterator[None]:
    """Within the block a broker that starts may ask this address for the keys of tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={address}")
        yield


def _settings(addresses: dict[str, str], authority: Authority, keys: str) -> dict[str, str]:
    """The broker's settings for its listeners."""
    certificate, key = authority.issue("broker")
    both = authority.folder / "broker-keystore.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    made = {
        "listeners": ",".join(f"{name}://{address}" for name, address in addresses.items()),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in addresses.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{one[0]}" for name, one in LISTENERS.items()),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.tls.ssl.client.auth": "required",
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": (
            f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url": keys,
        "listener.name.oauth.sasl.oauthbearer.expected.audience": "kafka",
    }
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    for name, (_, mechanism, login) in LISTENERS.items():
        if mechanism:
            own = f"listener.name.{name.lower()}"
            made[f"{own}.sasl.enabled.mechanisms"] = mechanism
            text = login.replace("{password}", f'"{escaped}"')
            made[f"{own}.{mechanism.lower()}.sasl.jaas.config"] = text.replace("\\", "\\\\")
    return made


def _add_user(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    added = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    admin.alter_user_scram_credentials([added])[USER].result(300)


class TokenEndpoint(HTTPServer):
    """Gives signed tokens to the client with the right secret, and the public key to a broker."""

    key = rsa.generate_private_key(65537, 2048)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/token"

    def keys(self) -> dict[str, Any]:
        """The public key as a JSON web key set."""
        numbers = self.key.public_key().public_numbers()
        modulus, exponent = (_encode(n.to_bytes((n.bit_length() + 7) // 8)) for n in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": modulus, "e": exponent}]}

    def token(self) -> str:
        now = int(time())
        claims = {"sub": USER, "aud": "kafka", "iat": now - 5, "exp": now + 600, "scope": "kafka"}
        head = {"alg": "RS256", "kid": "1", "typ": "JWT"}
        signed = ".".join(_encode(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{_encode(self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


class TokenRequest(BaseHTTPRequestHandler):
    """A request to the token endpoint."""

    server: TokenEndpoint

    def do_POST(self) -> None:
        given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if given == f"{USER}:{PASSWORD}":
            self.answer(200, {"access_token": self.server.token(), "token_type": "Bearer", "expires_in": 600})
        else:
            self.answer(401, {"error": "invalid_client"})

    def do_GET(self) -> None:
        self.answer(200, self.server.keys())

    def answer(self, status: int, found: dict[str, Any]) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
