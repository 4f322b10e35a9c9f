"""Simulates products that give their messages headers, and choose their partitions, by columns of the root. Products of some runs
share a topic, by a constant in their keys.

Topics have two or three partitions, and those of some runs grow by one with each start of the job.
"""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any, cast

from processor.engine.plan.plan import Plan
from processor.engine.rounds.round import PublishSetup
from processor.job.run import topics
from processor.language.product.document import key_of_root, message_key
from processor.language.product.expressions.expression import Column
from processor.language.product.product import KeyPart, Product, root_entity
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import HEADERS, Message, partition_of_key
from tests.simulator.actor import TableClient
from tests.simulator.mixed import MixedEditSimulation
from tests.simulator.oracle import canonical_row, roots
from tests.simulator.run import Simulation
from tests.simulator.shapes import Row, Shape

SHARED = "shared.products"
ONE_TEXT = ("int", "string", "bool", "date", "timestamp")
"""The types whose equal values have one text."""


def routed(shape: Shape, rng: Random) -> Shape:
    """The shape whose products have headers and `partition_by`."""
    definitions = shape.definitions
    products, shared = {}, rng.random() < 0.5
    for name, product in definitions.products.items():
        root = root_entity(product, definitions.entities)
        columns = [c for c, type_ in root.columns.items() if not type_.array and type_.name in ONE_TEXT]
        headers = rng.sample(columns, min(len(columns), rng.choice((1, 2))))
        chosen = rng.sample(columns, min(len(columns), rng.choice((0, 1, 1, 2))))
        products[name] = replace(
            product,
            headers=tuple((f"h-{c}", Column(name=c)) for c in headers),
            partition_by=tuple((c, Column(name=c)) for c in chosen),
            topic=SHARED if shared else product.topic,
            key=(KeyPart("kind", constant=name), *(KeyPart(c, column=c) for c in root.key)) if shared else (),
        )
    return replace(shape, definitions=replace(definitions, products=products), unused_columns={})


class RoutedSimulation(Simulation):
    """A run whose products have headers and `partition_by`."""

    __slots__ = ("_grows", "_partitions")

    def run(self) -> None:
        rng = Random(f"{self.seed} routed")
        self.shape = routed(self.shape, rng)
        self._partitions, self._grows = rng.choice((2, 3)), rng.random() < 0.3
        super().run()
        self.problem = self.problem or self._misplaced()

    def product_of(self, message: Message) -> Product:
        name = dict(message.headers)["statestore.product"] or b""
        return self.shape.definitions.products[name.decode()]

    def _start(self) -> None:
        super()._start()
        if self.job is not None:
            self._partitions += self._grows
            progress = self.job.driver.progress
            partitions = dict.fromkeys(self.shape.plan.products, self._partitions)
            progress.setup = replace(progress.setup, partitions=partitions)

    def _misplaced(self) -> str | None:
        """A key whose document is in the wrong partition, in two of them, or with wrong headers; None if there is none."""
        last: dict[tuple[str, str], dict[int, Message]] = {}
        for _, message in self.world.broker.log:
            last.setdefault((message.topic, (message.key or b"").decode()), {})[message.partition] = message
        tables, definitions, moved = self.source_tables(), self.shape.definitions, Counter[str]()
        for product in definitions.products.values():
            root = root_entity(product, definitions.entities)
            rows = {
                message_key(product, _key(row, root)): canonical_row(row, root)
                for row in roots(root, tables, definitions)
            }
            for (topic, key), messages in last.items():
                shown = [one for one in messages.values() if one.value is not None]
                moved["moved"] += topic == product.topic and len(messages) > 1
                if topic != product.topic or not shown or key_of_root(product, key) is None:
                    continue
                if key not in rows:
                    return f"{topic} {key} is shown, and its root is gone"
                if len(shown) > 1:
                    return f"{topic} {key} is in partitions {sorted(one.partition for one in shown)}"
                own = {name: text for name, text in shown[0].headers if name not in HEADERS}
                if own != (want := _headers(rows[key], [c for _, c in product.headers])):
                    return f"{topic} {key} has the headers {own}, should be {want}"
                by = canonical_json.encode({c: rows[key].get(c) for c, _ in product.partition_by})
                place = partition_of_key(by, self._partitions) if product.partition_by else -1
                if shown[0].partition != place and not self._grows:
                    return f"{topic} {key} is in partition {shown[0].partition}, should be in {place}"
        self.facts["moved documents"] = moved["moved"]
        return None


PARTITIONS = 3


class RoutedEditSimulation(MixedEditSimulation):
    """A run with random products, which operators edit: some get, lose or change `partition_by`, or get a topic of others."""

    __slots__ = ()

    def run(self) -> None:
        super().run()
        self.problem = self.problem or self._astray()

    def prepare(self, plan: Plan) -> PublishSetup | None:
        partitions, store = dict.fromkeys(plan.products, PARTITIONS), cast(Any, TableClient(self.world.actor))
        sequences = topics.earlier_sequences(self.settings, plan, store, partitions=partitions)
        return PublishSetup(earlier_sequences=sequences, partitions=partitions)

    def _messages(self, servers: str, kafka: object, topic: str) -> list[Message]:
        return list(map(_placed, super()._messages(servers, kafka, topic)))

    def _astray(self) -> str | None:
        """A key with documents in two partitions; None if there is none."""
        last: dict[tuple[str, bytes | None], dict[int, Message]] = {}
        newest: dict[tuple[str, bytes | None], Message] = {}
        for _, message in self.world.broker.log:
            at = message.topic, message.key
            last.setdefault(at, {})[_placed(message).partition] = newest[at] = message
        for at, messages in last.items():
            shown = sorted(place for place, one in messages.items() if one.value is not None)
            self.facts["moved documents"] += len(messages) > 1
            if len(shown) > 1 and not self.is_left(newest[at]):
                return f"{at} is in partitions {shown}"
        return None


def _placed(message: Message) -> Message:
    """The message with its partition, which the broker chooses by the key where the job does not."""
    own = partition_of_key(message.key or b"", PARTITIONS) if message.partition < 0 else message.partition
    return message._replace(partition=own)


def _key(row: Row, root: Entity) -> str:
    return canonical_json.dumps({c: row[c] for c in root.key})


def _headers(row: Row, columns: list[Any]) -> dict[str, bytes]:
    values = {f"h-{column.name}": row.get(column.name) for column in columns}
    texts = {name: v if isinstance(v, str) else canonical_json.dumps(v) for name, v in values.items() if v is not None}
    return {name: text.encode() for name, text in texts.items()}
