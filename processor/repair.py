"""Publishes documents anew that differ from the state, as a short run of the job: fenced, through the ledger.

    1. take the lease (refused while a job lives)   2. fence every earlier producer   3. reload open changes, wait W
    4. for each chunk of roots, a round: doubt the ledger, so that an equal hash does not suppress; publish; end the round
    5. give the lease back

Open changes stay open: the next run of the job takes them over.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import sleep

from processor.batch import CHUNK, Round, publish_part
from processor.errors import Fenced, StatestoreError
from processor.kafka import TransactionalOutbox
from processor.lockstep import Lockstep
from processor.model.ledger import Mark, Run, end_round
from processor.model.plan import Plan
from processor.model.touch import Root
from processor.settings import Settings
from processor.steps.publish import doubt
from processor.verify import open_changes
from processor.worker import transactional_id
from registry.model import Lease
from registry.repository import Registry
from statestore.store import Done, Store

SLOT = 0
"""The publish slot that sends; all are fenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted:
    """A root to publish anew, and the key of its message."""

    root: Root
    key: str


@dataclass(slots=True, kw_only=True)
class Repair:
    """One run that repairs. Raises LeaseHeld while a job lives, Fenced when one takes over."""

    settings: Settings
    plan: Plan
    registry: Registry
    store: Store
    owner: str
    run: Run = field(init=False)

    def publish(self, doubted: Sequence[Doubted]) -> Counter[str]:
        """Publishes the documents of these roots, whatever the ledger says; returns the counts."""
        settings = self.settings
        lease = self.registry.take_lease(
            settings.job, self.owner, settings.publish_slots, take_over=False, expires_after=settings.lease_seconds
        )
        try:
            self.registry.applied(lease, self.plan.version)
            self.run = Run(number=lease.generation)
            outboxes = [self._outbox(slot) for slot in range(lease.publish_slots)]
            lockstep = Lockstep(store=self.store, outbox=outboxes[SLOT], open=(open_changes(self.store).places,))
            sleep(settings.wait_seconds)
            tally: Counter[str] = Counter()
            for number, start in enumerate(range(0, len(doubted), CHUNK)):
                tally += self._round(number, doubted[start : start + CHUNK], lockstep, lease)
            return tally
        finally:
            self.registry.release(lease)

    def _outbox(self, slot: int) -> TransactionalOutbox:
        settings = self.settings
        return TransactionalOutbox(settings.bootstrap_servers, dict(settings.kafka), transactional_id(settings, slot))

    def _round(self, number: int, doubted: Sequence[Doubted], lockstep: Lockstep, lease: Lease) -> Counter[str]:
        self.registry.renew(lease)
        attempt = self.registry.begin_attempt(lease, SLOT, number)
        if attempt is None:
            raise Fenced(f"job {lease.job}: another job took over; verify again once it has ended")
        mark = Mark(self.run.number, number, SLOT, attempt)
        lockstep.run(doubt(*one.root, one.key, mark) for one in doubted)
        round_ = Round(
            plan=self.plan,
            run=self.run,
            number=number,
            batch=0,
            starts={},
            forget=0,
            rejects=self.settings.rejects_topic,
        )
        sent = publish_part([one.root for one in doubted], round_, SLOT, attempt, lockstep)
        self.run = replace(self.run, through=number)
        if not isinstance(self.store.write(end_round(self.run)), Done):
            raise Fenced(f"job {lease.job}: another job took over; verify again once it has ended")
        for product, why in sent.failed.items():
            raise StatestoreError(f"product {product} cannot be repaired: {why}")
        return sent.tally
