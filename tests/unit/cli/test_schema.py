"""`statestore schema`: the schema in the product's format, or in the one that the author asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main

ENTITIES = "user: {key: [id], columns: {id: int, user-id: int, user_id: int}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "entities.yaml").write_text(ENTITIES)
    (tmp_path / "framed.yaml").write_text("{product: framed, root: user, format: avro, fields: [id]}")
    (tmp_path / "plain.yaml").write_text("{product: plain, root: user}")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["framed"], "record"),
        (["framed", "--format", "json"], "object"),
        (["plain"], "object"),
        (["plain", "--format", "json"], "object"),
    ],
    ids=" ".join,
)
def test_the_schema_is_of_the_product_s_format_or_of_another(
    words: list[str], kind: str, folder: Path, capsys: Any
) -> None:
    assert main(["schema", *words, "--definitions", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == kind


def test_names_that_avro_cannot_tell_apart_are_an_error_in_one_line(folder: Path, capsys: Any) -> None:
    assert main(["schema", "plain", "--format", "avro", "--definitions", str(folder)]) == 1
    expected = "product plain: Avro has the name `user_id` for `user-id` and for `user_id`"
    cure = "select the members by `fields`, with names that differ"
    assert capsys.readouterr().err == f"statestore schema: {expected}; {cure}\n"
