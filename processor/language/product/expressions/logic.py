"""SQL's three-valued logic. None means unknown."""

from typing import Any


def both(*values: bool | None) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def either(*values: bool | None) -> bool | None:
    if True in values:
        return True
    return None if None in values else False


def is_in(value: Any, *choices: Any) -> bool | None:
    if value is None:
        return None
    if value in choices:
        return True
    return None if None in choices else False


def is_null(value: Any) -> bool:
    return value is None


def is_true(value: bool | None) -> bool:
    return value is True


def is_false(value: bool | None) -> bool:
    return value is False


def coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def nullif(value: Any, other: Any) -> Any:
    return None if value == other else value


def greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


def least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


def case(*parts: Any) -> Any:
    """The value of the first true condition. `parts`: pairs of condition and value, then the value of `else`."""
    for when, then in zip(parts[:-1:2], parts[1::2], strict=True):
        if when is True:
            return then
    return parts[-1]
