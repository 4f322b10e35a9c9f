"""A trouble is said when it begins, now and then while it lasts, and when it ends."""

from processor.engine.rounds.events import JobEvent, Troubles


class Scene:
    """Troubles with a clock that the test moves, and the lines that they report."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.events: list[JobEvent] = []
        self.troubles = Troubles(self.events.append, clock=lambda: self.now)

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(event.what, event.text) for event in self.events]

    def fails(self) -> None:
        self.troubles.begin("registry", "127.0.0.1:5432 does not answer; the job publishes nothing", "start Postgres")


def test_the_log_says_a_trouble_once_and_again_every_thirty_seconds() -> None:
    scene = Scene()
    for _ in range(61):
        scene.fails()
        scene.now += 1
    assert scene.lines == [
        (
            "degraded",
            f"registry{after}: 127.0.0.1:5432 does not answer; the job publishes nothing: start Postgres",
        )
        for after in ("", ", for 30 s", ", for 1 min")
    ]
    assert {event.level for event in scene.events} == {"warning"}


def test_the_end_of_a_trouble_says_how_long_it_lasted_and_the_next_one_begins_from_zero() -> None:
    scene = Scene()
    scene.fails()
    scene.now += 12
    scene.troubles.end("registry")
    scene.troubles.end("registry")
    assert scene.lines[1:] == [("recovered", "the registry answers again after 12 s")]
    assert scene.troubles.as_json() == []
    scene.fails()
    assert [(trouble.part, trouble.since) for trouble in scene.troubles.now] == [("registry", 1_012.0)]


def test_the_oldest_trouble_comes_first() -> None:
    scene = Scene()
    scene.troubles.begin("store", "does not answer", "wait")
    scene.now += 1
    scene.fails()
    assert [trouble.part for trouble in scene.troubles.now] == ["store", "registry"]
