"""Replays and drops dead letters that a person chose, as `rejects replay` and `rejects drop` do."""

from collections.abc import Sequence
from datetime import UTC, datetime

from processor.console.console_parts import ConsoleParts
from processor.console.screen import EditDone
from processor.console.visit import Visit
from processor.job.binding import readable_store
from processor.progress.replays import drop, letter_position, replay_key
from processor.records.dead_letters import DeadLetter
from processor.serve.problem import LookUpProblem
from registry.edits.edit import Signature

DROP = "drop"


def act_on_letters(parts: ConsoleParts, visit: Visit) -> EditDone:
    """Asks the running job to replay the chosen letters, or drops them."""
    by = visit.signature()
    chosen = _chosen(parts, visit)
    match visit.asked("act"):
        case "replay":
            said = _replay(parts, by, chosen)
        case "drop" if visit.asked("typed") == DROP:
            said = _drop(parts, by, chosen)
        case "drop":
            raise LookUpProblem(400, f"type `{DROP}`, since no replay takes these letters any more")
        case _:
            raise LookUpProblem(400, "choose `replay` or `drop`")
    before = visit.asked("before")
    return EditDone(to=f"/letters?before={before}" if before else "/letters", said=said)


def _chosen(parts: ConsoleParts, visit: Visit) -> list[DeadLetter]:
    """The letters that the person marked, and that still wait."""
    marked = set(visit.form.get("letter", ()))
    waiting = {
        replay_key(one.rejected.record).sk: one
        for one, fate in parts.letters(visit.asked("before")).letters
        if not fate
    }
    chosen = [waiting[at] for at in sorted(marked & waiting.keys())]
    if not chosen:
        raise LookUpProblem(
            400, "no chosen dead letter waits any more: mark some" if marked else "mark some dead letters"
        )
    return chosen


def _replay(parts: ConsoleParts, by: Signature, letters: Sequence[DeadLetter]) -> str:
    job = next((one for one in parts.registry.jobs() if one.alive), None)
    if job is None:
        cure = "start it, or use `statestore rejects replay`"
        raise LookUpProblem(409, f"no job runs, and only a running job replays; {cure}")
    places = [letter_position(letter.rejected.record) for letter in letters]
    number = parts.registry.replays.ask(places, who=by.who, why=by.why)
    return f"Request {number}: job {job.job} replays {len(letters)} dead letters, in turn with its batches"


def _drop(parts: ConsoleParts, by: Signature, letters: Sequence[DeadLetter]) -> str:
    with readable_store(parts.settings, parts.registry) as store:
        for letter in letters:
            store.write(drop(letter.rejected.record, who=by.who, why=by.why, at=datetime.now(UTC)))
    return f"{len(letters)} dead letters are dropped: no replay takes them"
