"""The story of `statestore demo --live`: which part starts when, what the screen shows, and the comparison at the end."""

import re
from time import monotonic, sleep

from processor.demo.live import DEBEZIUM, JOB, LiveParts, live_parts
from processor.demo.live_documents import LiveDocuments
from processor.errors import KafkaError
from processor.local.cache import ShowProgress
from processor.records import canonical_json
from processor.records.record import Value
from processor.stores.kinds import kind_of

STEPS = 6
JOB_FLAGS = {"wait_seconds": "0.2", "settle_seconds": "0.2", "batch_size": "200"}
"""An index of moto is never late, so W and S are short."""
WIDTH = 150
"""Characters that a line shows of a document's changed members."""
LONG_TEXT = re.compile(r'("[^"]{12})[^"]{60,}(?=")')
LOOK_SECONDS = 1.0
DELIVERY_SECONDS = 600.0
"""So long Debezium and the job may take until a change arrives."""


def run_live_demo(store: str, show: ShowProgress) -> tuple[int, list[str], int]:
    """Runs the demo with the job's table in `store`. Returns how many documents the SQL gives, which published ones differ, and
    how many dead letters there are. Raises PartError."""
    own = kind_of(store).embedded
    api = "" if own.start is None else f", and {own.title}"
    show(f"step 1 of {STEPS}: starting Kafka, and Postgres with wal_level=logical{api}")
    with live_parts(store, JOB_FLAGS, show) as parts:
        show(f"step 2 of {STEPS}: the application makes its tables and first rows (examples/shop/application.py)")
        parts.create_source(seed=1)
        screen = LiveScreen(parts, show)
        screen.show_statements()
        show(f"step 3 of {STEPS}: starting Debezium and the job, which publishes the first documents")
        parts.start(DEBEZIUM)
        parts.start(JOB)
        screen.wait_for_documents()
        show(f"step 4 of {STEPS}: the application writes (sql), and the documents follow (doc, with what changed)")
        parts.start_writing("--steps", "24", "--pause", "2")
        screen.follow()
        show(f"step 5 of {STEPS}: ending Debezium, and running the job until no work remains")
        finish(parts)
        screen.show_documents()
        show(f"step 6 of {STEPS}: asking the application's own database for the same documents, by the products' SQL")
        return (*screen.documents.compare(), screen.documents.dead_letters())


def finish(parts: LiveParts) -> None:
    """Ends Debezium after the last change is in Kafka, and lets the job do all its work."""
    documents, until = LiveDocuments(parts), monotonic() + DELIVERY_SECONDS
    while not documents.is_closed():
        if monotonic() > until:
            raise KafkaError(f"Debezium did not send the last change within {DELIVERY_SECONDS:.0f} s")
        parts.start_again()
        sleep(LOOK_SECONDS)
    parts.kill(DEBEZIUM)
    parts.stop(JOB)
    parts.finish_job()


class LiveScreen:
    """Shows what the application writes and which documents follow."""

    def __init__(self, parts: LiveParts, show: ShowProgress) -> None:
        self._parts, self._show = parts, show
        self.documents = LiveDocuments(parts)
        self._shown = 0
        self._last: dict[tuple[str, str], Value] = {}

    def wait_for_documents(self) -> None:
        """Waits for the documents of the rows that Debezium's snapshot has: until no more come."""
        shown, before = 0, 0
        while not shown or shown > before:
            self._parts.start_again()
            sleep(LOOK_SECONDS)
            before, shown = shown, shown + self.show_documents()

    def follow(self) -> None:
        """Shows both until the application has ended."""
        writes = True
        while writes:
            writes = self._parts.writes()
            self._parts.start_again()
            self.show_statements()
            self.show_documents()
            sleep(LOOK_SECONDS)

    def show_documents(self) -> int:
        """Shows the documents since the last call. Returns how many."""
        fresh = list(self.documents.fresh())
        for record in fresh:
            place = (record.topic, (record.key or b"").decode())
            document = None if record.value is None else canonical_json.loads(record.value)
            self._show(f"doc    {' '.join(place)} {changed_members(self._last.get(place), document)}")
            self._last[place] = document
        return len(fresh)

    def show_statements(self) -> None:
        """Shows the lines that the application printed since the last call."""
        lines = self._parts.application_lines()
        for line in lines[self._shown :]:
            self._show(f"sql  {line}")
        self._shown = len(lines)


def changed_members(before: Value, after: Value) -> str:
    """The members of a document that are new or differ, as JSON; long texts and long lines are cut."""
    if after is None:
        return "is gone"
    old = before or {}
    members = {
        name: value for name, value in after.items() if name not in old or not canonical_json.equal(old[name], value)
    }
    text = LONG_TEXT.sub(r"\1...", canonical_json.dumps(members))
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ..."
