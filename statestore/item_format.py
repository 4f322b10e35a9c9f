"""The format version of all items, `_f`: rows, edges, and the job's progress.

The doorway to DynamoDB checks each item that it reads. So a release never takes an item of a newer format for one of its own.
"Upgrade" in docs/operate.md says when a release may write another format. The memory store needs no check: it keeps nothing that
another release wrote.
"""

from collections.abc import Mapping
from typing import Any

from statestore.errors import NewerFormat

FORMAT = 1
"""The format version of the items that this release writes, and the highest that it reads."""


def check_format(item: Mapping[str, Any]) -> None:
    """Raises NewerFormat for an item of a newer release. Part of an item, without `_f`, passes."""
    found = item.get("_f")
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormat(
            f"{item.get('PK')} / {item.get('SK')}: the item has format {found}, and this release of statestore reads formats up "
            f"to {FORMAT}: a newer release wrote it. Stop this job, and install that release"
        )
