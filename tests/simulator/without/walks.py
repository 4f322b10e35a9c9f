"""Switches for the protections of registry edits: fills, publications, and the steps of the job in the registry."""

from dataclasses import replace
from typing import Any

import processor.plan.row_image as row_image
import processor.progress.walks as walks
import processor.steps.fill as fill
from processor.plan.plan import Plan
from processor.progress.ledger import LedgerEntry
from processor.progress.walk import FillGoal
from processor.progress.walks import Walks
from registry.advance import advance
from statestore.items import Row
from tests.simulator.leases import Registry
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


def _at_once(end_fills: Any) -> Any:
    return lambda self, plan, now: end_fills(self, plan, now + self.wait)


no_wait_after_evidence = replacing((Walks, "end_fills", _at_once))


def _unconditional(merge_image: Any) -> Any:
    return lambda *args, **kw: merge_image(*args, **kw)._replace(when=None)


unconditional_fill = replacing((fill, "merge_image", _unconditional))
not_filled_after_refusal = replacing((row_image, "layout_image", always(None)))


def _any_other_layout(layout_image: Any) -> Any:
    def changed(plan: Any, seen: Row) -> Any:
        return layout_image(plan, seen._replace(layout=-1) if seen.layout != plan.layout else seen)

    return changed


older_plans_fill_too = replacing(
    (row_image, "layout_image", _any_other_layout), (fill, "layout_image", _any_other_layout)
)


def _widest(goal_of: Any) -> Any:
    return lambda entity: FillGoal(goal_of(entity).layout, None)


goal_stays = replacing((walks, "goal_of", _widest))


def _only_changed(adopt: Any) -> Any:
    def changed(self: Walks, *args: Any) -> Any:
        self.claimed = True
        return adopt(self, *args)

    return changed


not_claimed = replacing((Walks, "adopt", _only_changed))
rows_only = replacing(
    (walks, "_published_partitions", lambda _: lambda plan, p: plan.entities[p.product.root].partitions())
)
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


def _unchecked(self: Registry, lease: Any, version: int, *, proven: Any, published: Any) -> None:
    self.edit(lambda stored: advance(stored, proven=proven, published=published))


zombies_take_steps = replacing((Registry, "advance", lambda _: _unchecked))
