"""Writes the JSON Schemas that the package ships: `python -m processor.editors.generate_schemas`, from the root of a checkout."""

import json
from pathlib import Path

from processor.editors.json_schemas import entities_schema, product_schema, tests_schema
from processor.editors.settings_schema import settings_schema

FILES = Path("processor/editors/schemas")


def generated_schemas() -> dict[str, str]:
    """The text of each schema by its name."""
    made = {
        "entities": entities_schema(),
        "product": product_schema(),
        "tests": tests_schema(),
        "settings": settings_schema(),
    }
    return {name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in made.items()}


if __name__ == "__main__":
    for name, text in generated_schemas().items():
        (FILES / f"{name}.json").write_text(text, encoding="utf-8")
