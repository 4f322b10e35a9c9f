"""The files of `make package`. Without the tools of the extra `package` its tests are skipped; on the build machine they fail."""

from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session")
def package_tools() -> None:
    """Skips a test where the tools are missing."""
    missing = [name for name in ("uv", "venv_pack", "cyclonedx") if find_spec(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: pip install 'statestore[package]'")
