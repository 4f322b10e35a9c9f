"""A finding of a check, the check itself, and the findings that several rooms share: the way to a server, and clocks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Literal, TypeVar

FindingState = Literal["ok", "warning", "failure", "skipped"]
Look = TypeVar("Look", bound=Callable[[Any], "Iterable[Finding]"])
"""The function of a check."""
CONNECT_SECONDS = 3.0
"""The longest wait for a connection."""
CLOCK_SECONDS = 5.0
"""Two clocks that differ by more make wrong ages of documents. The header `Date` has whole seconds."""
REFUSED_SECONDS = 240.0
"""AWS refuses a request whose time is wrong by 5 minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding: with `failure` a job does not run, or loses data. `cure`: of a warning or a failure."""

    state: FindingState
    text: str
    cure: str = ""


class NothingToCheck(Exception):
    """The question of a check does not arise. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """A check of `doctor`."""

    name: str
    looks_at: str
    """For people."""
    look: Callable[[Any], Iterable[Finding]]
    """Gets the surroundings, writes nothing that stays, and disturbs no job."""
    cure: str
    """Of an error that `look` raises."""
    needs: tuple[str, ...] = ()
    """The earlier checks whose failure would only come again here."""
    seconds: float = 30.0
    """The time limit."""


class Checks(list[DoctorCheck]):
    """The checks of one subject, in the order of their functions in its file."""

    def check(
        self, name: str, looks_at: str, *, cure: str, needs: tuple[str, ...] = (), seconds: float = 30.0
    ) -> Callable[[Look], Look]:
        """Declares the function below as a check. The arguments: see `DoctorCheck`."""

        def declare(look: Look) -> Look:
            self.append(DoctorCheck(name=name, looks_at=looks_at, look=look, cure=cure, needs=needs, seconds=seconds))
            return look

        return declare


def ok(text: str) -> Finding:
    """Nothing to do."""
    return Finding(state="ok", text=text)


def warning(text: str, cure: str) -> Finding:
    """A job runs, with a risk."""
    return Finding(state="warning", text=text, cure=cure)


def failure(text: str, cure: str) -> Finding:
    """A job does not run, or loses data."""
    return Finding(state="failure", text=text, cure=cure)


def skipped(why: str) -> Finding:
    """The check says nothing."""
    return Finding(state="skipped", text=why)


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
    import socket
    import ssl  # only a failed connection needs them: `check` starts without

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
