"""Acts on groups of dead letters: what a replay would do, the request to the job, and drops. The verbs and the console call these
functions, so both follow the same rules:

1. A group is a filter over the account in the registry. Its letters are those that wait when the person acts.
2. `preview` decodes the letters by the definitions in force now. It writes nothing, and asks neither the job nor the table. So it
   does not know whether a newer change of a row makes a letter superseded.
3. A replay is a request, which the registry keeps with the person, the reason, the group and the outcome of each letter.
4. A drop is in the table first, since replays look there, and then in the registry, as a request that is done.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.protocol.decode import TopicEntities, compare_columns, decode
from processor.engine.protocol.replays import drop_at
from processor.engine.rounds.follow_up_stages import MOVED, TOO_OLD, TRUNCATE
from processor.engine.rounds.round_runner import HOUR
from processor.errors import StatestoreError
from processor.job.run.dead_letters import read_requested
from processor.text import DAY
from processor.values.dead_letters import REPAIR, DeadLetter, column_of
from processor.values.decimal_forms import NO_FORMS, ColumnForms, Forms
from processor.values.entity import Entity
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Change, Rejected, Truncated
from registry.edits.edit import Signature
from registry.model import LetterPosition
from statestore.store import Store

if TYPE_CHECKING:
    from processor.environment.settings.settings import Settings
    from registry.repository import Registry

MOST_TRIED: Final = 2_000
"""Letters of a group that a preview of the console decodes."""
REASONS_SHOWN: Final = 5
CUT = "kept in part: a replay reads the whole record from its topic"
FRAMED = "a replay asks the schema registry"
OF_DOCUMENT = "in place of a document: a replay looks whether a later one went out"
CONTINUED = "a repair from the source: the job takes it by itself"


class RefusedAgain(NamedTuple):
    """Why the present definitions refuse letters: without values of the records."""

    code: str
    column: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterPreview:
    """What a replay would do with the letters that were tried. `readable`: it applies them, or finds them superseded; `refused`:
    it refuses them again; `unknown`: why the definitions alone do not tell. `letters`: of the group."""

    letters: int
    readable: int
    refused: Mapping[RefusedAgain, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """How many letters were tried."""
        return self.readable + sum(self.refused.values()) + sum(self.unknown.values())

    def lines(self) -> Iterator[str]:
        """The preview in words, a line each."""
        of = "" if self.tried == self.letters else f", of which the first {self.tried:,} were tried"
        yield f"{self.letters:,} dead letters{of}: the present definitions read {self.readable:,}"
        refused = sorted(self.refused.items(), key=lambda pair: (-pair[1], pair[0]))
        for again, count in refused[:REASONS_SHOWN]:
            yield f"{count:,} would be refused again: {again.code}: {again.reason}"
        if more := refused[REASONS_SHOWN:]:
            yield f"{sum(count for _, count in more):,} would be refused again for {len(more)} other reasons"
        for why, count in sorted(self.unknown.items()):
            yield f"{count:,} {why}"


def preview(
    letters: Iterable[DeadLetter], plan: Plan, forms: Forms | None = None, oldest: float = 0.0
) -> LetterPreview:
    """What a replay of these letters would do. `forms`: of decimals, as they are settled; `oldest`: a replay refuses letters from
    before (`oldest_letter`)."""
    readable, refused, unknown = 0, Counter[RefusedAgain](), Counter[str]()
    entities = TopicEntities(one.entity for one in plan.entities.values())
    for letter in letters:
        entity = entities.of_letter(letter.rejected)
        if why := _unknown(letter.rejected):
            unknown[why] += 1
        elif again := _refused_again(
            letter, entity, (forms or {}).get(entity.name if entity else "", NO_FORMS), oldest
        ):
            refused[again] += 1
        else:
            readable += 1
    count = readable + refused.total() + unknown.total()
    return LetterPreview(letters=count, readable=readable, refused=refused, unknown=unknown)


def _refused_again(letter: DeadLetter, entity: Entity | None, forms: ColumnForms, oldest: float) -> RefusedAgain | None:
    if letter.kept_since < oldest:
        return RefusedAgain(letter.rejected.code, "", TOO_OLD)
    record = letter.rejected.record
    if entity is None:
        return RefusedAgain("other", "", f"no entity has the topic {record.topic} any more")
    match decode(record, entity, forms=forms):
        case Rejected(code=code, reason=reason, plain=plain):
            return RefusedAgain(code, column_of(reason), plain or reason)
        case Change(former=former) if former is not None:
            return RefusedAgain("key-moved", "", MOVED)
        case Truncated():
            return RefusedAgain("other", "", TRUNCATE)
        case _:
            return None


def column_lines(rejected: Rejected, plan: Plan, forms: Forms) -> list[str]:
    """How the row of a letter differs from the declared columns, in words. No line where no entity reads the topic, or the row is
    unreadable. `forms`: of decimals, as they are settled."""
    entity = TopicEntities(one.entity for one in plan.entities.values()).of_letter(rejected)
    if entity is None or rejected.cut is not None:
        return []
    compared = compare_columns(rejected.record, entity, forms.get(entity.name, NO_FORMS))
    if compared is None:
        return []
    lines = list(compared.refused)
    if compared.missing:
        lines.append(f"declared, and not in the record: {', '.join(compared.missing)}")
    if compared.undeclared:
        lines.append(f"in the record, and not declared: {', '.join(compared.undeclared)}")
    return lines or ["all are as declared"]


def oldest_letter(settings: "Settings") -> float:
    """The time of the oldest letter that a replay takes, in seconds since 1970."""
    return time() - settings.marker_days * DAY + HOUR


def preview_places(
    settings: "Settings",
    registry: "Registry",
    places: Sequence[LetterPosition],
    plan: Plan,
    forms: Forms | None = None,
    most: int = MOST_TRIED,
) -> LetterPreview:
    """The preview of the letters at these places; tries the first `most`. Reads the topic of dead letters once. Raises KafkaError
    where the broker does not answer."""
    found = read_requested(settings, registry, places[:most])
    letters = islice((letter for portion in found.portions for letter in portion), most)
    return replace(preview(letters, plan, forms, oldest_letter(settings)), letters=len(places))


def replay_letters(
    registry: "Registry", places: Collection[LetterPosition], by: Signature, selection: object = ""
) -> int:
    """Asks the running job, or the next one, to replay the letters at these places. Returns the number of the request.
    `selection`: which letters the person chose, as text or as a filter. Raises StatestoreError without letters."""
    _check_some(places)
    return registry.replays.ask(places, who=by.who, why=by.why, selection=str(selection))


def drop_letters(
    registry: "Registry",
    store: Store,
    places: Collection[LetterPosition],
    by: Signature,
    selection: object = "",
) -> int:
    """Gives up the letters at these places, for good. Returns the number of the request that keeps who, when and why. Raises
    StatestoreError without letters."""
    _check_some(places)
    at = datetime.now(UTC)
    drops = [drop_at(place, who=by.who, why=by.why, at=at) for place in places]
    store.write_all(list({one.key: one for one in drops}.values()))
    return registry.replays.note_drop(places, who=by.who, why=by.why, selection=str(selection))


def _check_some(places: Collection[LetterPosition]) -> None:
    if not places:
        raise StatestoreError("no dead letter of this selection waits any more")


def _unknown(rejected: Rejected) -> str:
    """Why the definitions alone do not tell what a replay would do; empty where they do."""
    if rejected.cut is not None:
        return CUT
    if rejected.code in OF_DOCUMENTS:
        return OF_DOCUMENT
    if rejected.code == REPAIR:
        return CONTINUED
    return FRAMED if rejected.code.startswith(("schema-", "other-registry")) else ""
