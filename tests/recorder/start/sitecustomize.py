"""Python imports this file at the start of each process that the tests start. In a moto server it switches the recorder on."""

import sys

if any("moto.server" in word for word in sys.orig_argv):
    from pathlib import Path

    sys.path.append(str(Path(__file__).parents[3]))
    from tests.recorder.moto_calls import record_moto

    record_moto()
