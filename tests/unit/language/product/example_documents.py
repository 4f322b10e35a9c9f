"""The documents that the examples publish, of their tests and of their recorded topics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial, run_trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory, read_tests
from processor.language.definitions.product_tests import read_cases
from processor.tools.demo.github import build_history, load_events
from processor.values import canonical_json
from processor.values.recorded_topics import read_records

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[4] / "examples").glob("*/entities.yaml"))


def example_documents(example: Path, folder: Path) -> tuple[Plan, list[tuple[str, Any]]]:
    """The plan of an example, and (product, document) of each message that is no tombstone. `folder`: for a file."""
    definitions = load(read_directory(example))
    plan = plan_alone(definitions, slots=20)
    trials = [run_trial(case, plan, Settings()) for case in read_cases(read_tests(example), definitions)]
    recorded = sorted(example.glob("*.jsonl"))
    if (example / "events.ndjson.gz").exists():
        story = folder / "story.jsonl"
        lines = build_history(load_events(example / "events.ndjson.gz")).records
        story.write_text("".join(canonical_json.dumps(line) + "\n" for line in lines))
        recorded.append(story)
    for file in recorded:
        trials.append(Trial(plan=plan, settings=Settings()))
        trials[-1].batch(read_records(str(file)))
    documents = [pair for trial in trials for pair in published_documents(trial)]
    assert {name for name, _ in documents} == set(plan.products)
    return plan, documents


def published_documents(trial: Trial) -> Iterator[tuple[str, Any]]:
    """(product, document) of each message that is no tombstone."""
    for message in trial.published.messages:
        if message.value is not None:
            yield dict(message.headers)["statestore.product"].decode(), canonical_json.loads(message.value)  # type: ignore[union-attr]
