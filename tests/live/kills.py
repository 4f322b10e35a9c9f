"""Kills Debezium, the broker and the job with SIGKILL in turn, and starts each again."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from time import monotonic, sleep

from processor.tools.demo.live import BROKER, DEBEZIUM, DELIVERY_SECONDS, JOB, LOOK_SECONDS, LiveDocuments, LiveParts

RESTARTED = (DEBEZIUM, BROKER, JOB)
LONGEST_DOWN = 5.0
"""Seconds for which a killed part is down."""


def kill_in_turn(
    parts: LiveParts, documents: LiveDocuments, seconds: float, random: Random, longest_pause: float
) -> Counter[str]:
    """Kills for `seconds`, and longer until each part was killed once. After a restart, the next kill waits for a new document.
    `longest_pause`: the most seconds between this document and that kill. Returns how often each part was killed."""
    killed, end = Counter[str](), monotonic() + seconds
    for part in _turns(random):
        _wait_for_document(parts, documents)
        if monotonic() > end and killed.keys() >= {*RESTARTED}:
            break
        sleep(random.uniform(0, longest_pause))
        list(documents.fresh())
        parts.kill(part)
        sleep(random.uniform(0, LONGEST_DOWN))
        parts.start(part)
        killed[part] += 1
        print(f"step {len(parts.application_lines())}: {part} was killed, and is started again", flush=True)
    return killed


def _turns(random: Random) -> Iterator[str]:
    """All parts in an order by chance, again and again."""
    while True:
        yield from random.sample(RESTARTED, len(RESTARTED))


def _wait_for_document(parts: LiveParts, documents: LiveDocuments) -> None:
    """Waits until a document comes that nobody has read yet."""
    until, seen = monotonic() + DELIVERY_SECONDS, False
    while not seen:
        assert monotonic() < until, f"no document for {DELIVERY_SECONDS:.0f} s; see {parts.log(JOB)}"
        assert parts.writes(), "the application ended too early"
        parts.start_again()
        sleep(LOOK_SECONDS)
        seen = bool(list(documents.fresh()))
