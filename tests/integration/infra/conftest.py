"""The files of `make package`. Without the tools of the extra `package` its tests are skipped; on the build machine they fail."""

import pytest

from tests.support.required import require_package_tools


@pytest.fixture(scope="session")
def package_tools() -> None:
    """Skips a test where the tools are missing."""
    require_package_tools()
