"""The roles of a registry in Postgres, as SQL: an operator, a job, a lander and a reader, each with the rights of its work.

The owner is the user who migrates. Each role is a group without login, named after the schema, which an administrator grants to
users. The rules of the schema hold for every role. Only the owner may change the schema, its triggers and its functions.
"""

from collections.abc import Mapping
from typing import Final

from registry.migrations.first_rules import DERIVED, EDITED

ROLES: Final = ("reader", "job", "operator", "lander")

_ALL: Final = "INSERT, UPDATE, DELETE"
_OPERATOR: Final = {
    **dict.fromkeys(EDITED, _ALL),
    "replay_requests": "INSERT, UPDATE",
    "replay_letters": "INSERT",
    "landings": _ALL,
}
_JOB: Final = {
    "assignments": "UPDATE, DELETE",
    "joins": "DELETE",
    "access_paths": "UPDATE",
    "products": _ALL,
    "product_joins": _ALL,
    "waiting_products": "DELETE",
    "epochs": "INSERT",
    "leases": "INSERT, UPDATE",
    "attempts": "INSERT, UPDATE",
    "entity_statistics": _ALL,
    "join_statistics": _ALL,
    "walk_progress": _ALL,
    "replay_requests": "INSERT, UPDATE",
    "replay_letters": "INSERT, UPDATE",
}
_LANDER: Final = {"landings": _ALL}
_EDITOR: Final = {"meta": "UPDATE", "history": "INSERT", **dict.fromkeys(DERIVED, "INSERT, UPDATE")}
"""The rights of everybody who edits: the version, and the tables that triggers write."""


def role_statements(schema: str) -> list[str]:
    """The statements that create the roles of a schema, or bring their rights to this release."""
    tables = f'ALL TABLES IN SCHEMA "{schema}"'
    names = ", ".join(f'"{schema}_{role}"' for role in ROLES)
    statements = [_create(f"{schema}_{role}") for role in ROLES]
    statements += [f"REVOKE ALL ON {tables} FROM {names}", f"GRANT SELECT ON {tables} TO {names}"]
    statements.append(f'GRANT USAGE ON SCHEMA "{schema}" TO {names}')
    for role, rights in (("job", _JOB | _EDITOR), ("operator", _OPERATOR | _EDITOR), ("lander", _LANDER)):
        statements += [f'GRANT {right} ON "{schema}".{table} TO "{schema}_{role}"' for table, right in rights.items()]
    return statements


def job_rights() -> list[tuple[str, str]]:
    """The rights of a job: (table, right)."""
    return _rights(_JOB | _EDITOR)


def operator_rights() -> list[tuple[str, str]]:
    """The rights of an operator: (table, right)."""
    return _rights(_OPERATOR | _EDITOR)


def _rights(of: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(table, right) for table, rights in of.items() for right in ("SELECT", *rights.split(", "))]


def _create(role: str) -> str:
    return f'DO $$ BEGIN CREATE ROLE "{role}"; EXCEPTION WHEN duplicate_object THEN NULL; END $$'
