"""Find a Java that can run the embedded parts."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from processor.errors import PartError

OLDEST_JAVA = 17  # Kafka 4 brokers need it; Spark 3.5 and 4 run on it
INSTALL_JAVA = f"install a JDK or JRE {OLDEST_JAVA} or newer, and set JAVA_HOME to it or put its java on PATH"
JVM_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""With the C1 compiler and the serial collector the port of Kafka opens after 2.2 s instead of 4.6 s, and DynamoDB Local needs
6.6 s of CPU for its start and 1,000 writes, instead of 13.6 s (2 cores)."""


def find_java() -> str:
    """The path of a java of version 17 or newer, from JAVA_HOME, else PATH. Raises PartError."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = str(Path(home) / "bin" / "java")
        if shutil.which(java) is None:
            raise PartError("Java", f"JAVA_HOME is {home}, which has no bin/java", INSTALL_JAVA)
    else:
        java = shutil.which("java") or ""
        if not java:
            raise PartError("Java", "there is no java on PATH, and JAVA_HOME is not set", INSTALL_JAVA)
    major = _major_version(java)
    if major < OLDEST_JAVA:
        raise PartError("Java", f"{java} is version {major}, which is too old", INSTALL_JAVA)
    return java


@functools.cache
def _major_version(java: str) -> int:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PartError("Java", f"{java} does not run ({error})", INSTALL_JAVA) from error
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    if match is None:
        raise PartError(
            "Java", f"{java} -version prints no version: {(run.stderr + run.stdout).strip()[:200]}", INSTALL_JAVA
        )
    return int(match[1])
