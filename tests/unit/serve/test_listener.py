"""Where a server may listen."""

import pytest

from processor.errors import SettingError
from processor.serve.listener import Listener


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    assert Listener(host=host, port=1).is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org"])
def test_another_address_needs_a_token_or_certificates_of_clients(host: str) -> None:
    with pytest.raises(SettingError, match="give --token REF, or --certificate, --key and --client-ca for mTLS"):
        Listener(host=host, port=1)
    with pytest.raises(SettingError, match="--client-ca for mTLS"):
        Listener(host=host, port=1, certificate="c.pem", key="k.pem")
    assert not Listener(host=host, port=1, token=True).is_local
    Listener(host=host, port=1, certificate="c.pem", key="k.pem", client_ca="ca.pem")


def test_mtls_needs_tls() -> None:
    with pytest.raises(SettingError, match="give --certificate and --key too"):
        Listener(host="127.0.0.1", port=1, client_ca="ca.pem")
