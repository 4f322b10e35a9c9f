"""The base of all errors that statestore raises on purpose."""


class StatestoreError(Exception):
    """An expected failure. The message says what went wrong, with which thing, and what to do about it."""


class PlanError(StatestoreError):
    """Definitions and slot assignments do not fit together."""


class SettingError(StatestoreError):
    """A setting is missing or wrong. The message names the setting."""


class AddressMissing(SettingError):
    """Addresses that a verb needs are missing. The message names their flags and their variables."""


class Outage(StatestoreError):
    """A part outside of the job does not answer, or takes no work now: the job may go on later. `part`: its name; `cure`: what an
    operator can do; `throttled`: the part answers, and refuses work because there is too much; `at`: when it failed, in seconds
    since 1970, None: just now."""

    def __init__(self, text: str, *, part: str, cure: str, throttled: bool = False, at: float | None = None) -> None:
        super().__init__(text)
        self.part, self.cure, self.throttled, self.at = part, cure, throttled, at


class SchemaRegistryAway(StatestoreError):
    """The schema registry does not answer, or fails. A later try may succeed."""


class KafkaError(StatestoreError):
    """The broker refused a request, or did not answer."""


class OracleError(StatestoreError):
    """Postgres refused the rows of the state, or refused a product's SQL over them."""


class TopicRefused(KafkaError):
    """A topic refuses a message, or refuses every message. The message names the topic. `too_large`: it refuses the size of a
    message; `gone`: the broker does not know it."""

    def __init__(self, topic: str, why: str, *, too_large: bool = False, gone: bool = False) -> None:
        cure = (
            "start the job again, which creates it, and give `statestore republish` for its product"
            if gone
            else "correct the topic or its permissions"
        )
        super().__init__(f"topic {topic} refuses what is sent to it ({why}): {cure}")
        self.topic, self.too_large = topic, too_large


class TransactionTimedOut(KafkaError):
    """A transaction lasted longer than the broker allows, so the broker aborted it. The next attempt sends everything again."""


class Fenced(StatestoreError):
    """Another run of the job took over: this run must stop."""


class LostWrites(StatestoreError):
    """The table lacks what this run wrote before."""

    def __init__(self, run: int, round_: int) -> None:
        super().__init__(
            f"the table went back to an earlier moment: run {run} ended round {round_}, and the table does not know that. "
            "A standby without the last writes took over, or a backup was restored. This run publishes nothing more. Go on "
            "from that moment: `statestore run --adopt` with a new --checkpoint"
        )


class Stopped(StatestoreError):
    """An operator asked the job to stop; Spark reads an unfinished batch again at the next start."""


class StreamOutdated(StatestoreError):
    """The registry has other topics now, or an operator paused the job: the stream ends, and begins again."""


class BoundaryError(StatestoreError):
    """A topic was created again, or got other partitions, after its epochs were recorded."""


class OwnedByAnother(StatestoreError):
    """The table, the registry, the job's name or the checkpoint belongs to something else."""


class CheckpointError(StatestoreError):
    """The checkpoint does not fit to what the job reads."""


class TooManyRejects(StatestoreError):
    """A batch has a larger share of dead letters than the setting allows. The job stops instead of draining the stream."""


class TruncateRefused(StatestoreError):
    """The source emptied a table, and the entity refuses that. The batch is not committed."""

    def __init__(self, entity: str, topic: str, partition: int, offset: int, partitions: int) -> None:
        place = f"topic {topic}, partition {partition}, offset {offset}: the source emptied the table of {entity}, and "
        keep = "`truncate: ignore` to keep its rows until a delete event of each comes"
        if partitions == 1:
            why = f"the rows would stay: set for entity {entity} `truncate: delete` to delete them, or {keep}"
        else:
            why = (
                f"the topic has {partitions} partitions, so it is unknown which changes of the others came before: "
                f"let the connector write the table to a topic of one partition, or set for entity {entity} {keep}"
            )
        super().__init__(f"{place}{why}; this batch is not committed")


class AccountError(StatestoreError):
    """The number of records read differs from the number accounted for. This is a defect, and a reason to stop."""


class PartError(StatestoreError):
    """An embedded part (`processor/environment/programs`) cannot start, or stopped.

    Args: part: its name. why: what happened. cure: what to install or to do.
    """

    def __init__(self, part: str, why: str, cure: str) -> None:
        super().__init__(f"{part}: {why}. {cure[:1].upper()}{cure[1:]}.")
        self.part = part
