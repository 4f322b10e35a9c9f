"""A plan and its rows for dialogues: joins by key, by a slot that two entities share, by elements of an array, and of two levels.

profile   user -> its stars by name (GSI_1), each with its repo by key, and its pulls by name (GSI_1)
orders    user -> its orders (GSI_2), each with its lines (GSI_2)
teams     team -> its members, the users whose ids are in an array
"""

from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load
from statestore.items import encode_version
from statestore.keys import Key
from statestore.store import Item

PLAN: Plan = plan_alone(
    load(
        {
            "entities.yaml": """
                user: {key: [id], columns: {id: int, name: string, bio: string}}
                star: {key: [id], columns: {id: int, who: string, repo: int}}
                pull: {key: [id], columns: {id: int, author: string, title: string}}
                repo: {key: [id], columns: {id: int, title: string, forks: int}}
                order: {key: [id], columns: {id: int, user: int}}
                line: {key: [id], columns: {id: int, order: int}}
                team: {key: [id], columns: {id: int, members: "int[]"}}
            """,
            "a_profile.yaml": """
                product: profile
                root: user
                fields: [name]
                embed:
                  stars: {many: star, on: {who: name}, join: {repo: {one: repo, on: {id: repo}}}, value: repo.title}
                  pulls: {many: pull, on: {author: name}, value: title}
            """,
            "orders.yaml": """
                product: orders
                root: user
                fields: [id]
                embed:
                  orders: {many: order, on: {user: id}, embed: {lines: {many: line, on: {order: id}, value: id}}}
            """,
            "teams.yaml": """
                product: teams
                root: team
                fields: [id]
                embed: {members: {many: user, on: {id: "members[]"}, value: name}}
            """,
        }
    ),
    20,
)
V = [encode_version(0, 0, n) for n in range(10)]
"""The versions of the offsets 0 to 9."""


def key(entity: str, number: int) -> Key:
    return Key(f"TABLE#{entity}", str(number))


def row_item(entity: str, number: int, *, version: str = V[1], **columns: Any) -> Item:
    """The item of a row; `columns` may also name slots."""
    pk, sk = key(entity, number)
    return {"PK": pk, "SK": sk, "_f": 1, "_v": version, "id": number, **columns}
