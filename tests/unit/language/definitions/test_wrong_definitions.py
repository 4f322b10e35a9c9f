"""Wrong definitions, each with its whole error message, as golden files: `wrong/*.txt`.

A case without an entities file uses the entities of examples/github. After an intended change of a message, run
`UPDATE_GOLDEN=1 pytest tests/unit/language/definitions` and read the diff.
"""

import os
import re
from pathlib import Path

import pytest

from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError

CASES = sorted((Path(__file__).parent / "wrong").glob("*.txt"))
EXAMPLE = Path(__file__).parents[4] / "examples" / "github" / "entities.yaml"


def parts(case: Path) -> dict[str, str]:
    """The files of a case by name; `error` is the expected message."""
    pieces = re.split(r"^=== (.+)\n", case.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_wrong_definition_gets_file_line_cause_and_cure(case: Path) -> None:
    texts = parts(case)
    expected = texts.pop("error")
    if not any(file.startswith("entities.") for file in texts):
        texts["entities.yaml"] = EXAMPLE.read_text(encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        load(texts)
    if "UPDATE_GOLDEN" in os.environ:
        case.write_text(case.read_text(encoding="utf-8").partition("=== error\n")[0] + f"=== error\n{caught.value}\n")
        return
    assert f"{caught.value}\n" == expected


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 70


def test_each_problem_names_a_line_of_its_file() -> None:
    for case in CASES:
        texts = parts(case)
        for line in texts.pop("error").splitlines():
            file, number = re.match(r"([^:]+):(?:(\d+):)? .+; .+", line).groups()  # type: ignore[union-attr]
            if number and file in texts:
                assert 1 <= int(number) <= max(1, texts[file].count("\n")), (case.stem, line)
