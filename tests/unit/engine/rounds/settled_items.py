"""Items whose prices are decimals of a form that records settle, and a trial that reads them."""

import json
from decimal import Decimal
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.decoding import FORMS, read_form
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import read_dead_letters
from processor.values.decimal_forms import LearnedForm
from processor.values.record import Record
from statestore.memory import MemoryStore
from statestore.store import Store

ENTITIES = "item: {key: [id], columns: {id: int, price: 'decimal(12,2)', tax: 'decimal(12,2)', raw: decimal}%s}"
PRODUCT = "product: shop\nroot: item\nfields: [price, tax, raw]\n"
DIGITS = {"12.34": "12.34", "12345": "12345", "1234": "1234", "1000": "1000"}
BYTES = {"1234": "-26588.24", "1000": "-26672.12", "BNI=": "12.34", "free": "83045.42"}


def plan(more: str = "") -> Plan:
    return plan_alone(load({"entities.yaml": ENTITIES % more, "shop.yaml": PRODUCT}), 5)


PLAN = plan()


def item(offset: int, price: Any, *, key: int = 1, partition: int = 0, epoch: int = 1, **more: Any) -> Record:
    row = {"before": None, "after": {"id": key, "price": price, **more}, "op": "u", "source": {}}
    where: dict[str, Any] = {"topic": "item", "partition": partition, "offset": offset, "epoch": epoch}
    return Record(**where, key=json.dumps({"id": key}).encode(), value=json.dumps(row).encode(), timestamp=1_000)


def started(store: Store | None = None, run: int = 1, by: Plan = PLAN) -> Trial:
    trial = Trial(plan=by, settings=Settings(), other_store=store or MemoryStore(), run=run)
    trial.driver.start()
    trial.driver.adopt(by)
    return trial


def prices(trial: Trial) -> dict[int, Any]:
    trial.finish()
    shown = {
        m.key: json.loads(m.value or b"null", parse_float=Decimal, parse_int=Decimal) for m in trial.published.messages
    }
    return {json.loads(key or b"")["id"]: document["price"] for key, document in shown.items()}


def reasons(trial: Trial) -> dict[int, str]:
    return {letter.rejected.record.offset: letter.rejected.reason for letter in letters(trial)}


def letters(trial: Trial) -> Any:
    kept = [Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value, headers=m.headers, timestamp=10**13)
            for n, m in enumerate(trial.rejects.messages)]  # fmt: skip
    return read_dead_letters(kept)


def settled(trial: Trial) -> dict[str, LearnedForm]:
    return {note.column: note.settled for note in map(read_form, trial.store.partition(FORMS))}
