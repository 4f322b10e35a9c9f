"""Findings about the way to a server, and about clocks."""

import socket
import ssl
from ipaddress import ip_address

from processor.findings.finding import Finding, failure, ok, warning

CONNECT_SECONDS = 3.0
"""The longest wait for a connection."""
CLOCK_SECONDS = 5.0
"""Two clocks that differ by more make wrong ages of documents. The header `Date` has whole seconds."""
REFUSED_SECONDS = 240.0
"""AWS refuses a request whose time is wrong by 5 minutes."""


def is_this_machine(host: str) -> bool:
    """Whether what goes to a host stays on this machine."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified  # 0.0.0.0 as a server's own address: all of this machine


def no_way(place: str, error: OSError, setting: str) -> Finding:
    """The finding for an address without a connection."""
    match error:
        case ssl.SSLCertVerificationError():
            cure = "AWS_CA_BUNDLE names the certificates to trust; correct it, or the name of the host"
            return failure(f"{place}: TLS: {error.verify_message}", cure)
        case ssl.SSLError():
            return failure(f"{place}: TLS fails: {error.strerror or error}", f"does it speak TLS? Correct {setting}")
        case socket.gaierror():
            return failure(f"{place}: DNS gives no address ({error.strerror})", f"correct {setting}, or DNS")
        case ConnectionRefusedError():
            return failure(f"{place} refuses connections", f"start the server, or correct {setting}")
        case TimeoutError():
            cure = f"let the firewall, the security group and the routes allow it, or correct {setting}"
            return failure(f"{place}: no answer within {CONNECT_SECONDS:g} s", cure)
    return failure(f"{place}: {error.strerror or error}", f"correct {setting}, or the network")


def clock_finding(ahead: float, other: str) -> Finding:
    """The finding for a clock of this machine that is `ahead` seconds before that of another one."""
    text = f"this machine is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} {other}"
    cure = "let NTP set the clocks"
    if abs(ahead) > REFUSED_SECONDS:
        return failure(f"{text}: AWS refuses requests, and ages of documents are wrong", cure)
    if abs(ahead) > CLOCK_SECONDS:
        return warning(f"{text}: ages of documents are wrong by that", cure)
    return ok(f"this machine and {other} agree")
