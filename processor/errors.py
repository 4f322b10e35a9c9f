"""The base of all errors that statestore raises on purpose."""


class StatestoreError(Exception):
    """What went wrong, to which thing, and what to do about it."""


class PlanError(StatestoreError):
    """Definitions and slot assignments that do not fit together."""


class SettingError(StatestoreError):
    """A setting that is missing or wrong; names it."""


class KafkaError(StatestoreError):
    """The broker refused, or did not answer."""


class OracleError(StatestoreError):
    """Postgres refused the rows of the state, or a product's SQL over them."""


class TopicRefused(KafkaError):
    """A topic takes no such message, or none at all; names it."""

    def __init__(self, topic: str, why: str) -> None:
        super().__init__(f"topic {topic} refuses what is sent to it ({why}): correct the topic or its permissions")
        self.topic = topic


class Fenced(StatestoreError):
    """Another job took over: this one must stop."""


class BoundaryError(StatestoreError):
    """A topic is not the one that the epochs were recorded for."""


class TooManyRejects(StatestoreError):
    """More dead letters than the set share of a batch: the job stops instead of draining the stream."""


class AccountError(StatestoreError):
    """Records read are not records accounted for: a defect, and a reason to stop."""


class PartError(StatestoreError):
    """An embedded part (`processor/local`) cannot start, or stopped.

    Args: part: its name. why: what happened. cure: what to install or to do.
    """

    def __init__(self, part: str, why: str, cure: str) -> None:
        super().__init__(f"{part}: {why}. {cure[:1].upper()}{cure[1:]}.")
        self.part = part
