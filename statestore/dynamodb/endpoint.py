"""The address of DynamoDB: the first lines of each request to it, and how a connection to it opens.

Promises: a proxy carries requests with TLS in a tunnel, and reads the others. Does not: speak TLS with the proxy itself.
"""

import os
import ssl
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where requests go. url: `https://host[:port][path]`; proxy: the URL of the proxy, or none; certificates: a file or a
    directory with the certificates of the authorities to trust."""

    url: str
    proxy: str | None = None
    certificates: str | None = None

    @property
    def host(self) -> str:
        """The value of the header `Host`."""
        parts = urlsplit(self.url)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        usual = {"http": 80, "https": 443}[parts.scheme]
        return name if parts.port in (None, usual) else f"{name}:{parts.port}"

    @property
    def path(self) -> str:
        """The path of the URL, at least `/`."""
        return urlsplit(self.url).path or "/"

    @property
    def head(self) -> str:
        """The first lines of each request. A proxy gets the whole URL of a server without TLS."""
        if self.proxy is None or self.url.startswith("https:"):
            return f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\n"
        target = f"http://{self.host}{self.path}"
        more = "".join(f"{name}: {value}\r\n" for name, value in _proxy_headers(self.proxy).items())
        return f"POST {target} HTTP/1.1\r\nHost: {self.host}\r\n{more}"


def connect(endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> HTTPConnection:
    """A connection that http.client has opened, with TLS and through the proxy's tunnel where necessary."""
    there = urlsplit(endpoint.url)
    first = urlsplit(endpoint.proxy) if endpoint.proxy else there
    host, port = first.hostname or "", first.port or (443 if first.scheme == "https" else 80)
    if tls is None:
        connection = HTTPConnection(host, port, timeout=timeout)
    else:
        connection = HTTPSConnection(host, port, timeout=timeout, context=tls)
        if endpoint.proxy:
            connection.set_tunnel(there.hostname or "", there.port or 443, _proxy_headers(endpoint.proxy))
    connection.connect()
    return connection


def tls_context(certificates: str | None) -> ssl.SSLContext:
    """Trusts these authorities only: a file or a directory."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if certificates is not None and os.path.isdir(certificates):
        context.load_verify_locations(capath=certificates)
    else:
        context.load_verify_locations(cafile=certificates)
    return context


def without_password(proxy: str) -> str:
    """The proxy's URL, as messages show it."""
    parts = urlsplit(proxy)
    return proxy.replace(f"{parts.username}:{parts.password}@", "***:***@", 1) if parts.username else proxy


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if not (parts.username and parts.password):
        return {}
    text = f"{unquote(parts.username)}:{unquote(parts.password)}"
    return {"Proxy-Authorization": "Basic " + b64encode(text.encode()).decode()}
