"""The server of the registry: its release, and what a crash or a failover leaves of the commits of a job."""

from collections.abc import Iterator

from processor.doctor.surroundings import Surroundings
from processor.findings.finding import Finding, NothingToCheck
from processor.stores.server_findings import commit_findings, release_finding


def check_registry_release(around: Surroundings) -> Iterator[Finding]:
    """The release of the registry's server."""
    yield release_finding(around.registry.state().release)


def check_registry_commits(around: Surroundings) -> Iterator[Finding]:
    """The commits on the registry's server."""
    if around.embedded:
        raise NothingToCheck("the server is embedded")
    yield from commit_findings(around.registry_durability)
