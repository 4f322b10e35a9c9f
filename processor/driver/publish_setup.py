"""What a run knows of the topics and schemas to publish to: made once for each plan, and given to the driver."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishSetup:
    """letter_bytes: the largest dead letter, None for any.
    earlier_sequences: product -> the highest sequence of its topic before the table's first message.
    message_limits: product -> the most bytes of a message of its topic, 8 MiB where unknown.
    schema_ids: product -> the id of the Avro schema of its documents.
    unready: product -> why the job cannot publish it."""

    letter_bytes: int | None = None
    earlier_sequences: Mapping[str, int] = field(default_factory=dict)
    message_limits: Mapping[str, int] = field(default_factory=dict)
    schema_ids: Mapping[str, int] = field(default_factory=dict)
    unready: Mapping[str, str] = field(default_factory=dict)

    def learn(self, limits: Mapping[str, int]) -> "PublishSetup":
        """The setup with the limits that topics had when they refused a message."""
        return replace(self, message_limits={**self.message_limits, **limits}) if limits else self
