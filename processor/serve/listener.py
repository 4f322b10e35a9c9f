"""Runs an ASGI application: on loopback, or elsewhere with a token or with certificates of its clients."""

import ssl
from dataclasses import dataclass
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from processor.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where a server listens. `certificate`, `key`: files of its TLS; `client_ca`: file of the authority of its clients, for
    mTLS. `token`: whether the guard asks for one."""

    host: str
    port: int
    token: bool = False
    certificate: str = ""
    key: str = ""
    client_ca: str = ""

    def __post_init__(self) -> None:
        if self.client_ca and not self.certificate:
            raise SettingError("--client-ca needs TLS: give --certificate and --key too")
        if not (self.is_local or self.token or self.client_ca):
            raise SettingError(
                f"--host {self.host} is reachable from other machines: give --token REF, or --certificate, --key and "
                "--client-ca for mTLS, or leave --host out"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    def run(self, app: ASGIApp) -> None:
        """Serves until SIGTERM or Ctrl-C. Raises SettingError for files that are no certificates."""
        config = uvicorn.Config(
            app,
            host=self.host,
            port=self.port,
            ssl_certfile=self.certificate or None,
            ssl_keyfile=self.key or None,
            ssl_ca_certs=self.client_ca or None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if self.client_ca else ssl.CERT_NONE,
            lifespan="off",
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
        try:
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise SettingError(
                f"--certificate, --key or --client-ca cannot be used: {error.strerror or error}"
            ) from None
        uvicorn.Server(config).run()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
