"""Switches for the protections of registry edits: fills, publications, and the steps of the job in the registry."""

from dataclasses import replace
from typing import Any

import processor.progress.walks as walks
import processor.rounds.walk_part as walk_part
from processor.plan.plan import Plan
from processor.progress.ledger import NO_DOCUMENT, LedgerEntry
from processor.progress.walks import Walks
from tests.simulator.without.switch import always, replacing

read_before_full = replacing(
    (Walks, "proven", lambda _: lambda self, plan: frozenset(plan.entities)),
    (Walks, "_has_proof", always(True)),
)


def _written_is_done(finish: Any) -> Any:
    def changed(self: Walks, name: Any, plan: Plan, now: float) -> None:
        walk = self.walks[name]
        if name[0] == "fill" and not (walk.left or walk.unseen):
            self.walks[name] = replace(walk, done=True)
        else:
            finish(self, name, plan, now)

    return changed


not_verified = replacing((Walks, "_finish", _written_is_done))


def _without_unseen(advance: Any) -> Any:
    return lambda self, walked, *args: advance(self, [one._replace(unseen=()) for one in walked], *args)


unseen_forgotten = replacing((Walks, "advance", _without_unseen))


rows_only = replacing(
    (walks, "_published_partitions", lambda _: lambda plan, p: plan.entities[p.product.root].partitions())
)


def _with_documents(roots: Any) -> Any:
    def changed(page: Any, answer: Any, *args: Any) -> Any:
        items = [item for item in answer.items if item.get("hash") != NO_DOCUMENT]
        return roots(page, answer._replace(items=items), *args)

    return changed


documents_only = replacing((walk_part, "_roots", _with_documents))
any_version_of_document = replacing((LedgerEntry, "shows", lambda _: lambda self, digest, _: self.hash == digest))


def _resumed_in_the_middle(adopt: Any) -> Any:
    def changed(self: Walks, plan: Plan, *args: Any) -> Any:
        running = {name: replace(product, paused=False) for name, product in plan.products.items()}
        requests = adopt(self, replace(plan, products=running), *args)
        for name, product in plan.products.items():
            if product.paused:
                self.walks["publish", name] = replace(self.walks["publish", name], held=True)
        return requests

    return changed


pause_keeps_the_walk = replacing((Walks, "adopt", _resumed_in_the_middle))
