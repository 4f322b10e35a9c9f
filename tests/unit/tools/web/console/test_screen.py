"""What a console loads before its first visit."""

from queue import Queue
from typing import Any

from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.tools.web.console.screen import ConsoleParts, SlotWidening


def test_a_part_that_fails_keeps_no_other_from_its_start() -> None:
    begun = Queue[str]()

    def part(name: str) -> Any:
        def begin(*_: str) -> Any:
            begun.put(name)
            raise KafkaError("no broker")

        return begin

    ConsoleParts(
        registry=part("registry"),
        settings=Settings(),
        open_reader=part("table"),
        letters=part("letters"),
        event_prices=part("prices"),
        known_prices=part("known prices"),
        landings=part("landings"),
        widening=SlotWidening(Settings()),
    ).preload()
    assert {begun.get(timeout=30) for _ in range(3)} == {"table", "letters", "prices"}
