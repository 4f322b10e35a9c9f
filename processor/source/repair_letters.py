"""Makes the dead letters that repair rows from the source (`processor.records.repair_record`). Pure."""

from collections.abc import Mapping

from processor.records import canonical_json
from processor.records.placeholders import PLACEHOLDER
from processor.records.record import Rejected, Value
from processor.records.repair_record import REPAIR, repair_record
from processor.source.compared_table import ComparedTable
from processor.source.comparison import SourceDifference


def repair_letter(
    found: SourceDifference, table: ComparedTable, why: str, number: int, json_text: Mapping[str, bool]
) -> Rejected | str:
    """The letter that gives a row what the source has; else why there is none. `why`: of the person; `number`: no other letter's.
    `json_text`: JSON columns -> whether the entity's rows hold them as text. Columns that do not compare keep their values."""
    if found.refused:
        column, reason = next(iter(found.refused.items()))
        return f"column {column} of the source: {reason}"
    entity = table.entity.entity
    values: dict[str, Value] | None = None
    if found.source is not None:
        kept = {*(entity.columns.keys() - table.forms.keys()), *(found.seen.more if found.seen else ())}
        values = dict(found.source) | dict.fromkeys(kept, PLACEHOLDER)
        for name, form in table.forms.items():
            if form.json and values[name] is not None and entity.columns[name].name == "json":
                if name not in json_text:
                    return f"column {name} is JSON, and no stored row shows whether the connector sends it as text"
                values[name] = values[name] if json_text[name] else canonical_json.loads(str(values[name]))
            elif entity.columns[name].text and values[name] is not None:
                values[name] = canonical_json.dumps(values[name])
    key = {name: found.key[name] for name in entity.key}
    record = repair_record(entity, key, values, found.seen.version if found.seen else "", number)
    return Rejected(record=record, reason=f"differs from the source: {why}", code=REPAIR, entity=entity.name)
